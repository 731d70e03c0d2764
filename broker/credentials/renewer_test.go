package credentials_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/credentials"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecontrolplane"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/reports"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

const validity = 8 * time.Hour

// fixture has one instance whose runtime has a Secret in the control plane, and two replicas of the renewer.
type fixture struct {
	*testing.T
	*fakecontrolplane.ControlPlane

	db       *storage.DB
	clock    *clocktesting.FakeClock
	records  *outsideobjects.Store
	held     process.Record
	client   *lifecyclemanager.Client
	objects  lifecyclemanager.Objects
	results  *credentials.Results
	replicas []credentials.Renewer

	authority *certificate.Authority
	mutex     sync.Mutex
	issued    int
	err       error
	// during, if set, runs while a kubeconfig is issued.
	during func()
}

func (f *fixture) Objects(context.Context, environment.Instance) (lifecyclemanager.Objects, error) {
	return f.objects, nil
}

// AdminKubeconfig returns a kubeconfig whose client certificate is valid for validity.
func (f *fixture) AdminKubeconfig(context.Context, environment.Instance) (secret.String, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()

	if f.err != nil {
		return "", f.err
	}

	if f.during != nil {
		f.during()
	}

	f.issued++

	issued, err := f.authority.IssueClient(certificate.Client{
		CommonName: fmt.Sprint("admin-", f.issued), Validity: validity + time.Until(f.clock.Now()),
	})

	return secret.String(fmt.Sprintf("{current-context: c, contexts: [{name: c, context: {user: u}}], users: [{name: u, user: {client-certificate-data: %s}}]}",
		base64.StdEncoding.EncodeToString(issued.Certificate))), err
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	must := func(err error) {
		t.Helper()

		if err != nil {
			t.Fatal(err)
		}
	}

	f := &fixture{
		T: t, ControlPlane: fakecontrolplane.New(), db: db, clock: clocktesting.NewFakeClock(time.Now().UTC()), results: credentials.NewResults(),
	}
	keys := storagetest.Keys(t)

	ops, err := operations.Open(t.Context(), db, keys)
	must(err)
	known, err := instances.Open(t.Context(), db, keys)
	must(err)
	f.records, err = outsideobjects.Open(t.Context(), db)
	must(err)
	claims, err := reports.Open(t.Context(), db)
	must(err)
	f.authority, err = certificate.OpenAuthority(t.TempDir(), "test")
	must(err)

	instance := environment.Instance{ID: "one", ShootName: "c-one", RuntimeID: "r-one", CreatedAt: f.clock.Now(), UpdatedAt: f.clock.Now()}
	must(db.InTx(t.Context(), func(tx storage.Tx) error { return storagetest.Insert(t.Context(), tx, known, instance) }))

	f.objects, err = lifecyclemanager.ObjectsOf(instance, lifecyclemanager.Settings{}, "kcp-system", "")
	must(err)

	server := httptest.NewServer(f.ControlPlane)
	t.Cleanup(server.Close)

	address, err := url.Parse(server.URL)
	must(err)

	f.client = lifecyclemanager.New(fakecontrolplane.Transport(address), 10*time.Second)
	f.held = storagetest.Hold(t, db, ops, environment.KindUpgradeKyma, "one")
	f.record(environment.OutsideCreated)
	must(f.client.ApplySecret(t.Context(), f.objects, "the first kubeconfig"))

	for range 2 {
		f.replicas = append(f.replicas, credentials.Renewer{
			DB: db, Instances: known, Objects: f.records, Reports: claims, Access: f, Kyma: f, Client: f.client, Results: f.results,
			Clock: f.clock, Log: logging.Discard(),
		})
	}

	f.run(0) // claims for the first time, and renews nothing

	return f
}

// record sets the state of the record, as an operation does.
func (f *fixture) record(state environment.OutsideState) {
	f.Helper()

	if err := f.records.Set(context.Background(), f.held, environment.OutsideObject{
		InstanceID: "one", System: environment.SystemLifecycleManager, Kind: environment.KindKubeconfig, Key: f.objects.Secret.String(), State: state,
	}, f.clock.Now()); err != nil {
		f.Error(err)
	}
}

// run advances the clock and runs both replicas. It returns the number of issued kubeconfigs.
func (f *fixture) run(after time.Duration) int {
	f.Helper()
	f.clock.Step(after)

	before := f.issued

	for _, replica := range f.replicas {
		if err := replica.Renew(f.Context()); err != nil {
			f.Fatal(err)
		}
	}

	return f.issued - before
}

// expiry returns the annotation of the Secret, or an empty text without a Secret.
func (f *fixture) expiry() string {
	secrets := f.ControlPlane.Objects("Secret")
	if len(secrets) == 0 {
		return ""
	}

	return secrets[0].GetAnnotations()["environment-broker.io/kubeconfig-expires-at"]
}

func (f *fixture) wantResults(renewed, restored, failed int) {
	f.Helper()

	want := fmt.Sprintf(`# HELP environment_broker_kubeconfig_renewals_total Renewals of kubeconfigs for Lifecycle Manager by this replica, by result: renewed, restored (the Secret was missing), failed.
# TYPE environment_broker_kubeconfig_renewals_total counter
environment_broker_kubeconfig_renewals_total{result="failed"} %d
environment_broker_kubeconfig_renewals_total{result="renewed"} %d
environment_broker_kubeconfig_renewals_total{result="restored"} %d
`, failed, renewed, restored)
	if err := testutil.CollectAndCompare(f.results, strings.NewReader(want)); err != nil {
		f.Error(err)
	}
}

// wantExpiring compares the number of kubeconfigs that expire soon.
func (f *fixture) wantExpiring(want int) {
	f.Helper()

	if _, got, err := f.records.CountKubeconfigs(f.Context(), f.clock.Now().Add(time.Hour)); err != nil || got != want {
		f.Errorf("%d kubeconfigs expire within an hour, want %d, %v", got, want, err)
	}
}

func TestRenewal(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)

		if issued := f.run(10 * time.Second); issued != 1 || f.expiry() == "" {
			t.Errorf("the first renewal issues %d kubeconfigs, and the Secret expires at %q", issued, f.expiry())
		}

		config, _, _ := unstructured.NestedString(f.ControlPlane.Objects("Secret")[0].Object, "data", "config")
		if content, err := base64.StdEncoding.DecodeString(config); err != nil || !strings.Contains(string(content), "client-certificate-data") {
			t.Errorf("the Secret has %q, %v", content, err)
		}

		if issued := f.run(3 * time.Hour); issued != 0 {
			t.Errorf("a fresh kubeconfig is renewed %d times", issued)
		}

		if issued := f.run(time.Hour); issued != 1 {
			t.Errorf("after half of its validity, %d kubeconfigs are issued", issued)
		}

		f.wantResults(2, 0, 0)
		f.wantExpiring(0)
	})
}

func TestFailedRenewal(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.run(10 * time.Second)
	f.err = errors.New("the Provisioner does not respond")

	for range 45 { // from 4 h to almost 8 h
		f.run(5 * time.Minute)
	}

	f.run(3*time.Hour + 30*time.Minute)
	f.wantExpiring(1)

	f.err = nil
	f.Inject(simulator.Fault{Operation: "patchSecret", Status: http.StatusForbidden})

	if issued := f.run(5 * time.Minute); issued != 1 {
		t.Errorf("after the outage, %d kubeconfigs are issued", issued)
	}

	f.wantExpiring(1)

	if issued := f.run(time.Minute); issued != 0 {
		t.Errorf("a failure is repeated at once: %d", issued)
	}

	f.run(5 * time.Minute)
	f.wantExpiring(0)
}

func TestMissingSecret(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.Remove("Secret", "kcp-system", "kubeconfig-r-one")
	f.run(10 * time.Second)
	f.wantResults(0, 1, 0)

	if f.expiry() == "" {
		t.Error("the missing Secret is not restored")
	}
}

// TestRemovalDuringRenewal lets an operation remove the Secret while a renewal issues the kubeconfig.
func TestRemovalDuringRenewal(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.during = func() {
		f.record(environment.OutsideRemoving)
		f.Remove("Secret", "kcp-system", "kubeconfig-r-one")
	}
	f.run(10 * time.Second)

	if left := f.Holds(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}

	if issued := f.run(24 * time.Hour); issued != 0 {
		t.Errorf("a Secret that is being removed is renewed %d times", issued)
	}
}
