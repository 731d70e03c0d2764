package credentials_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/credentials"
	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecontrolplane"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
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

	db         *storage.DB
	clock      *clocktesting.FakeClock
	operations *operations.Store
	instances  *instances.Store
	records    *outsideobjects.Store
	events     *instanceevents.Store
	// held is an unfinished operation of the instance.
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
func (f *fixture) AdminKubeconfig(ctx context.Context, _ environment.Instance) (secret.String, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()

	if f.err != nil {
		return "", f.err
	}

	if f.during != nil {
		f.during()
	}

	if err := ctx.Err(); err != nil {
		return "", err
	}

	f.issued++

	issued, err := f.authority.IssueClient(certificate.Client{
		CommonName: fmt.Sprint("admin-", f.issued), Validity: validity + time.Until(f.clock.Now()),
	})

	return secret.String(fmt.Sprintf("{current-context: c, contexts: [{name: c, context: {user: u, cluster: k}}], clusters: [{name: k, cluster: {server: \"https://api.example.com\"}}], users: [{name: u, user: {client-certificate-data: %s}}]}",
		base64.StdEncoding.EncodeToString(issued.Certificate))), err
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	f := &fixture{
		T: t, ControlPlane: fakecontrolplane.New(), db: db, clock: clocktesting.NewFakeClock(time.Now().UTC()), results: credentials.NewResults(environment.SystemLifecycleManager),
	}
	keys := storagetest.Keys(t)

	var err error

	f.operations, err = operations.Open(t.Context(), db, keys)
	f.must(err)
	f.instances, err = instances.Open(t.Context(), db, keys)
	f.must(err)
	f.records, err = outsideobjects.Open(t.Context(), db, keys)
	f.must(err)
	f.events, err = instanceevents.Open(t.Context(), db)
	f.must(err)
	claims, err := reports.Open(t.Context(), db)
	f.must(err)
	f.authority, err = certificate.OpenAuthority(t.TempDir(), "test")
	f.must(err)

	instance := environment.Instance{ID: "one", ShootName: "c-one", RuntimeID: "r-one", CreatedAt: f.clock.Now(), UpdatedAt: f.clock.Now()}
	instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Installer: environment.InstallerReconciler, Modules: []string{"istio"}}
	f.must(db.InTx(t.Context(), func(tx storage.Tx) error { return storagetest.Insert(t.Context(), tx, f.instances, instance) }))

	f.objects, err = lifecyclemanager.ObjectsOf(instance, lifecyclemanager.Settings{}, "kcp-system", "")
	f.must(err)

	server := httptest.NewServer(f.ControlPlane)
	t.Cleanup(server.Close)

	address, err := url.Parse(server.URL)
	f.must(err)

	f.client = lifecyclemanager.New(fakecontrolplane.Transport(address), 2*time.Second)
	f.held = storagetest.Hold(t, db, f.operations, environment.KindUpgradeKyma, "one")
	f.record(environment.OutsideCreated)
	f.must(f.client.ApplySecret(t.Context(), f.objects, "the first kubeconfig"))

	for range 2 {
		f.replicas = append(f.replicas, credentials.Renewer{
			DB: db, Instances: f.instances, Objects: f.records, Events: f.events, Reports: claims, Access: f, Validity: clusterclient.Validity,
			Holders: map[string]credentials.Holder{environment.SystemLifecycleManager: credentials.LifecycleManager{Kyma: f, Recorded: f.records, Client: f.client}},
			Results: f.results, Clock: f.clock, Log: logging.Discard(),
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

// expiry returns the annotation of the Secret with the expiry, or an empty text if there is no Secret.
func (f *fixture) expiry() string {
	secrets := f.ControlPlane.Objects("Secret")
	if len(secrets) == 0 {
		return ""
	}

	return secrets[0].GetAnnotations()["environment-broker.io/kubeconfig-expires-at"]
}

func (f *fixture) wantResults(renewed, restored, failed int) {
	f.Helper()

	want := fmt.Sprintf(`# HELP environment_broker_kubeconfig_renewals_total Renewals by this replica of runtime kubeconfigs in other systems, by system and result: renewed, restored (the Secret was missing), failed.
# TYPE environment_broker_kubeconfig_renewals_total counter
environment_broker_kubeconfig_renewals_total{result="failed",system="lifecycle-manager"} %d
environment_broker_kubeconfig_renewals_total{result="renewed",system="lifecycle-manager"} %d
environment_broker_kubeconfig_renewals_total{result="restored",system="lifecycle-manager"} %d
`, failed, renewed, restored)
	if err := testutil.CollectAndCompare(f.results, strings.NewReader(want)); err != nil {
		f.Error(err)
	}
}

// wantExpiring compares the number of kubeconfigs that expire soon.
func (f *fixture) wantExpiring(want int) {
	f.Helper()

	metrics := credentials.Metrics{Objects: f.records, Systems: slices.Collect(maps.Keys(f.replicas[0].Holders)), Clock: f.clock, Log: logging.Discard()}
	text := []string{"# HELP environment_broker_kubeconfigs_expiring Runtime kubeconfigs in other systems that have expired or expire within an hour, " +
		"by system. All replicas report the same value.\n# TYPE environment_broker_kubeconfigs_expiring gauge\n"}

	for _, system := range metrics.Systems {
		text = append(text, fmt.Sprintf("environment_broker_kubeconfigs_expiring{system=%q} %d\n", system, want))
	}

	if err := testutil.CollectAndCompare(metrics, strings.NewReader(strings.Join(text, "")), "environment_broker_kubeconfigs_expiring"); err != nil {
		f.Error(err)
	}
}

// wantEvents compares the events of the instance, in the form `result message × count`.
func (f *fixture) wantEvents(want ...string) {
	f.Helper()

	events, err := f.events.OfInstance(f.Context(), "one")
	if err != nil {
		f.Fatal(err)
	}

	var got []string
	for _, event := range events {
		got = append(got, fmt.Sprintf("%s: %s × %d", event.Result, event.Message, event.Count))
	}

	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("events: -want +got\n%s", diff)
	}
}

// wantShown compares the text of the instance's newest event with the row of the table. Without an event, the row must show no text.
func (f *fixture) wantShown(table, row string) {
	f.Helper()

	events, err := f.events.OfInstance(f.Context(), "one")
	if err != nil {
		f.Fatal(err)
	}

	text := ""
	if len(events) > 0 {
		text = events[0].Message
	}

	faulttable.Shows(f.T, table, row, text)
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
		f.wantEvents("renewed: the kubeconfig for Lifecycle Manager was renewed × 2")
		f.wantExpiring(0)
	})
}

// TestRenewalLabels checks that a renewal labels the objects of an instance that has moved to another account.
func TestRenewalLabels(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)

		resource := environment.OutsideObject{
			InstanceID: "one", System: environment.SystemLifecycleManager, Kind: environment.KindKymaResource, Key: f.objects.Kyma.String(),
			State: environment.OutsideCreated,
		}
		f.must(f.records.Set(t.Context(), f.held, resource, f.clock.Now()))
		f.must(f.client.ApplyKyma(t.Context(), f.objects))

		before := f.ControlPlane.Objects("Kyma")[0]

		f.move("second")
		f.run(10 * time.Second)

		for _, kind := range []string{"Kyma", "Secret"} {
			if got := f.account(kind); got != "second" {
				t.Errorf("the %s belongs to account %q", kind, got)
			}
		}

		after := f.ControlPlane.Objects("Kyma")[0]
		if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
			t.Errorf("the renewal changes the spec: -want +got\n%s", diff)
		}

		// An operation that changes the resource sets the labels itself.
		resource.State = environment.OutsideCreating
		f.must(f.records.Set(t.Context(), f.held, resource, f.clock.Now()))
		f.move("third")
		f.run(4 * time.Hour)

		if got := f.account("Kyma") + " " + f.account("Secret"); got != "second third" {
			t.Errorf("the Kyma resource and the Secret belong to the accounts %s", got)
		}

		// A renewal does not create the resource.
		resource.State = environment.OutsideCreated
		f.must(f.records.Set(t.Context(), f.held, resource, f.clock.Now()))
		f.Remove("Kyma", f.objects.Kyma.Namespace, f.objects.Kyma.Name)

		if issued := f.run(4 * time.Hour); issued != 1 || len(f.ControlPlane.Objects("Kyma")) > 0 {
			t.Errorf("without the resource, %d kubeconfigs are issued, and there are %d resources", issued, len(f.ControlPlane.Objects("Kyma")))
		}

		f.wantResults(3, 0, 0)
	})
}

func (f *fixture) must(err error) {
	f.Helper()

	if err != nil {
		f.Fatal(err)
	}
}

// move moves the instance to another account.
func (f *fixture) move(account string) {
	f.Helper()

	f.must(f.db.InTx(f.Context(), func(tx storage.Tx) error {
		instance, err := f.instances.Get(f.Context(), tx, "one")
		if err != nil {
			return err
		}

		instance.GlobalAccountID = account

		return f.instances.Update(f.Context(), tx, instance)
	}))
}

// account returns the account in the labels of the only object of a kind.
func (f *fixture) account(kind string) string {
	f.Helper()

	return f.ControlPlane.Objects(kind)[0].GetLabels()["kyma-project.io/global-account-id"]
}

// TestFailedRenewal lets the Provisioner fail until the kubeconfig is about to expire.
//
//faults:row lifecycle-manager.md#current-kubeconfigs the Provisioner issues no kubeconfig
func TestFailedRenewal(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.run(10 * time.Second)
	f.err = errors.New("the Provisioner does not respond")

	for range 45 { // from 4 h to almost 8 h
		f.run(5 * time.Minute)
	}

	f.run(3*time.Hour + 30*time.Minute)
	f.wantExpiring(1)
	f.wantShown("lifecycle-manager.md#current-kubeconfigs", "the Provisioner issues no kubeconfig")

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
	f.wantEvents(
		"renewed: the kubeconfig for Lifecycle Manager was renewed × 1",
		"failed: renewing the kubeconfig for Lifecycle Manager failed: the control plane rejects the credentials with HTTP status 403: "+
			"an operator must correct APP_CONTROL_PLANE_KUBECONFIG_PATH and the permissions of its user × 1",
		"failed: renewing the kubeconfig for Lifecycle Manager failed: internal error × 1",
		"renewed: the kubeconfig for Lifecycle Manager was renewed × 1",
	)
}

// TestLifecycleManagerFaults checks the text of a failed renewal, and the time of the next one. Each fault lasts for one renewal.
//
//faults:table lifecycle-manager.md#current-kubeconfigs
func TestLifecycleManagerFaults(t *testing.T) {
	cases := map[string]struct {
		fault simulator.Fault
		want  string
	}{
		"the control plane is unreachable, slow, returns no JSON, or its response is lost/unreachable": {simulator.Fault{Unsent: true, Times: 2}, "the control plane cannot be reached"},
		"the control plane is unreachable, slow, returns no JSON, or its response is lost/slow":        {simulator.Fault{Delay: time.Minute}, "the control plane did not respond within 2s"},
		"the control plane is unreachable, slow, returns no JSON, or its response is lost/no JSON":     {simulator.Fault{Body: "<html>"}, "it returned a response that is not the expected JSON"},
		"the control plane is unreachable, slow, returns no JSON, or its response is lost/lost":        {simulator.Fault{Lost: true, Times: 2}, "the control plane cannot be reached"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/400":                   {simulator.Fault{Status: http.StatusBadRequest}, "HTTP status 400 Bad Request"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/401":                   {simulator.Fault{Status: http.StatusUnauthorized}, "the control plane rejects the credentials with HTTP status 401"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/403":                   {simulator.Fault{Status: http.StatusForbidden}, "the control plane rejects the credentials with HTTP status 403"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/409":                   {simulator.Fault{Status: http.StatusConflict}, "HTTP status 409 Conflict"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/429":                   {simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 3600}, "HTTP status 429 Too Many Requests"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/500":                   {simulator.Fault{Status: http.StatusInternalServerError}, "HTTP status 500 Internal Server Error"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/503":                   {simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 3600}, "HTTP status 503 Service Unavailable"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			c.fault.Operation = "patchSecret"
			f.Inject(c.fault)
			f.run(10 * time.Second)
			f.wantFailures(1)

			objects, err := f.records.OfInstance(t.Context(), "one")
			if err != nil || len(objects) != 1 || !strings.Contains(objects[0].Credential.Problem, c.want) {
				t.Fatalf("the records are %+v, %v; want the problem %q", objects, err, c.want)
			}

			f.wantEvents("failed: renewing the kubeconfig for Lifecycle Manager failed: " + objects[0].Credential.Problem + " × 1")
			f.wantShown("lifecycle-manager.md#current-kubeconfigs", name)
			f.Reset()

			if issued := f.run(5*time.Minute - time.Second); issued != 0 {
				t.Errorf("the failure is repeated early: %d", issued)
			}

			if issued := f.run(10 * time.Second); issued != 1 || f.expiry() == "" {
				t.Errorf("after the pause, %d kubeconfigs are issued, and the Secret expires at %q", issued, f.expiry())
			}
		})
	}
}

// TestMissingSecret removes the Secret before a renewal.
//
//faults:row lifecycle-manager.md#current-kubeconfigs the Secret is missing
func TestMissingSecret(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.Remove("Secret", "kcp-system", "kubeconfig-r-one")
	f.run(10 * time.Second)
	f.wantResults(0, 1, 0)
	f.wantEvents("restored: the kubeconfig for Lifecycle Manager was missing and was restored × 1")
	f.wantShown("lifecycle-manager.md#current-kubeconfigs", "the Secret is missing")

	if f.expiry() == "" {
		t.Error("the missing Secret is not restored")
	}
}

// TestRemovalDuringRenewal lets an operation remove the Secret while a renewal issues the kubeconfig.
//
//faults:row lifecycle-manager.md#current-kubeconfigs the Secret is missing
//faults:row lifecycle-manager.md#current-kubeconfigs the runtime is being removed, or is left over
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

	f.wantShown("lifecycle-manager.md#current-kubeconfigs", "the runtime is being removed, or is left over")

	if issued := f.run(24 * time.Hour); issued != 0 {
		t.Errorf("a Secret that is being removed is renewed %d times", issued)
	}

	f.record(environment.OutsideLeftOver)

	if issued := f.run(24 * time.Hour); issued != 0 {
		t.Errorf("a Secret that is left over is renewed %d times", issued)
	}
}

// kill lets the first replica die after the system has received the kubeconfig, and leaves only the second one.
func (f *fixture) kill() {
	f.Helper()

	dying, die := context.WithCancel(f.Context())
	defer die()

	replica := f.replicas[0]
	replica.Holders = maps.Clone(replica.Holders)

	for system, holder := range replica.Holders {
		replica.Holders[system] = dyingHolder{holder, die}
	}

	if err := replica.Renew(dying); err != nil && dying.Err() == nil {
		f.Fatal(err)
	}

	f.replicas = f.replicas[1:]
}

// TestReplicaDiesAfterRestoration checks that a restoration has its event although its replica has not recorded it, and that a deletion of
// the Secret sees how long the restoration can last.
//
//faults:row lifecycle-manager.md#current-kubeconfigs the Secret is missing
//faults:row lifecycle-manager.md#current-kubeconfigs the replica dies
func TestReplicaDiesAfterRestoration(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		f.Remove("Secret", "kcp-system", "kubeconfig-r-one")
		f.clock.Step(10 * time.Second)
		f.kill()

		if f.expiry() == "" {
			t.Error("the missing Secret is not restored")
		}

		f.wantEvents()

		all, err := f.records.OfInstance(t.Context(), "one")
		if err != nil || len(all) != 1 || all[0].Credential.RenewingUntil.Sub(f.clock.Now()).Round(time.Second) != 90*time.Second {
			t.Errorf("during the restoration, the records are %+v, %v", all, err)
		}

		f.run(5 * time.Minute)
		f.run(validity / 2)
		f.wantEvents(
			"renewed: the kubeconfig for Lifecycle Manager was renewed × 1",
			"restored: the kubeconfig for Lifecycle Manager was missing and was restored × 1",
		)
		f.wantResults(1, 1, 0)
	})
}

// dyingHolder stops its replica after a request that the system has executed.
type dyingHolder struct {
	credentials.Holder

	die func()
}

func (h dyingHolder) Replace(ctx context.Context, object environment.OutsideObject, instance environment.Instance, kubeconfig secret.String,
	restore func(context.Context) error,
) error {
	defer h.die()

	return h.Holder.Replace(ctx, object, instance, kubeconfig, restore)
}

// TestReplicaDies stops a replica while a kubeconfig is issued, and after the system has received it. The other replica renews it after
// the pause.
//
//faults:row reconciler.md#current-kubeconfigs the replica dies
//faults:row lifecycle-manager.md#current-kubeconfigs the replica dies
func TestReplicaDies(t *testing.T) {
	for table, create := range map[string]func(*testing.T, *storage.DB) *fixture{
		"lifecycle-manager.md#current-kubeconfigs": newFixture,
		"reconciler.md#current-kubeconfigs":        func(t *testing.T, db *storage.DB) *fixture { t.Helper(); return newReconcilerFixture(t, db).fixture },
	} {
		for when, arrange := range map[string]func(*fixture, func()){
			"Issuing": func(f *fixture, die func()) { f.during = die },
			"Sent": func(f *fixture, die func()) {
				f.replicas[0].Holders = maps.Clone(f.replicas[0].Holders)
				for system, holder := range f.replicas[0].Holders {
					f.replicas[0].Holders[system] = dyingHolder{holder, die}
				}
			},
		} {
			t.Run(table+"/"+when, func(t *testing.T) {
				storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
					f := create(t, db)
					f.clock.Step(validity/2 + time.Minute)

					dying, die := context.WithCancel(t.Context())
					arrange(f, die)

					if err := f.replicas[0].Renew(dying); err != nil && dying.Err() == nil {
						t.Fatal(err)
					}

					f.during = nil
					f.replicas = f.replicas[1:]
					f.wantFailures(0)

					if issued := f.run(4 * time.Minute); issued != 0 {
						t.Errorf("during the pause, %d kubeconfigs are issued", issued)
					}

					if issued := f.run(time.Minute); issued != 1 {
						t.Errorf("after the pause, %d kubeconfigs are issued, want 1", issued)
					}

					f.wantExpiring(0)
					f.wantShown(table, "the replica dies")
				})
			})
		}
	}
}

// wantFailures compares the number of failed renewals of all systems.
func (f *fixture) wantFailures(want int) {
	f.Helper()

	families, err := testutil.CollectAndFormat(f.results, expfmt.TypeTextPlain, "environment_broker_kubeconfig_renewals_total")
	if err != nil {
		f.Fatal(err)
	}

	got := 0

	for line := range strings.Lines(string(families)) {
		var count int
		if _, text, is := strings.Cut(line, `result="failed",`); is {
			if _, err := fmt.Sscan(text[strings.LastIndex(text, " ")+1:], &count); err != nil {
				f.Fatal(err)
			}
		}

		got += count
	}

	if got != want {
		f.Errorf("%d renewals have failed, want %d", got, want)
	}
}
