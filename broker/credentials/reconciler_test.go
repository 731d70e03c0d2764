package credentials_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/environment-broker/environment-broker/broker/credentials"
	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/reconciling"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// reconcilerFixture has one instance whose runtime is registered in the Reconciler, without unfinished operations.
type reconcilerFixture struct {
	*fixture

	simulated *fakereconciler.Reconciler
	calls     *reconciler.Client
	// configuration is the error of the control plane, or nil. password is the value of an override in the control plane.
	configuration error
	password      secret.String
}

// Complete returns the Kyma with an installation.
func (f *reconcilerFixture) Complete(_ context.Context, instance environment.Instance) (*environment.Kyma, error) {
	completed := *instance.Request.Cluster.Kyma
	completed.Installation = &environment.KymaInstallation{
		Version: completed.Version, Components: []environment.KymaComponent{{Name: "istio", Namespace: "istio-system"}},
	}

	return &completed, f.configuration
}

// Overrides returns the Kyma with one more value.
func (f *reconcilerFixture) Overrides(_ context.Context, instance environment.Instance) (*environment.Kyma, error) {
	instance.Request.Cluster.Kyma.Installation.Set("", environment.KymaEntry{Key: "password", Value: f.password, Secret: true})

	return instance.Request.Cluster.Kyma, nil
}

func newReconcilerFixture(t *testing.T, db *storage.DB) *reconcilerFixture {
	t.Helper()

	f := &reconcilerFixture{fixture: newFixture(t, db), simulated: fakereconciler.New(), password: "secret-value"}
	server := httptest.NewServer(f.simulated)
	t.Cleanup(server.Close)

	config := reconciler.DefaultConfig()
	config.URL, config.Timeout = server.URL, 2*time.Second
	f.calls = reconciler.New(config, http.DefaultTransport)
	f.results = credentials.NewResults(environment.SystemReconciler)

	for i := range f.replicas {
		f.replicas[i].Results = f.results
		f.replicas[i].Holders = map[string]credentials.Holder{environment.SystemReconciler: credentials.Reconciler{
			Client: f.calls, Sent: f.records, Kyma: f, ShootDomain: "example.com", Timeout: config.Timeout, Clock: f.clock,
		}}
	}

	if _, err := f.calls.Apply(t.Context(), reconciler.Cluster{
		RuntimeID: "r-one", Kubeconfig: `{clusters: [{name: c, cluster: {server: "https://api.example.com"}}]}`,
		Kyma: reconciler.KymaConfig{Version: "1.0.0", Components: []reconciler.Component{{Component: "istio"}}},
	}); err != nil {
		t.Fatal(err)
	}

	f.cluster(environment.OutsideCreated, environment.NewCredential(f.clock.Now(), f.clock.Now().Add(validity)))
	f.finish()

	return f
}

// cluster changes the recorded registration, as an operation does.
func (f *reconcilerFixture) cluster(state environment.OutsideState, credential environment.Credential) {
	f.Helper()

	if err := f.records.Set(context.Background(), f.held, environment.OutsideObject{
		InstanceID: "one", System: environment.SystemReconciler, Kind: environment.KindCluster, Key: "r-one", State: state, Credential: credential,
	}, f.clock.Now()); err != nil {
		f.Error(err)
	}
}

// credential returns the recorded registration.
func (f *reconcilerFixture) credential() environment.OutsideObject {
	f.Helper()

	all, err := f.records.OfInstance(context.Background(), "one")
	if err != nil {
		f.Fatal(err)
	}

	for _, object := range all {
		if object.System == environment.SystemReconciler {
			return object
		}
	}

	return environment.OutsideObject{}
}

// finish ends the held operation.
func (f *reconcilerFixture) finish() {
	f.Helper()

	ended := f.held
	ended.State, ended.FinishedAt = process.Succeeded, f.clock.Now()

	if _, err := f.operations.Save(f.Context(), process.Progress{Record: ended, Release: true, Now: f.clock.Now()}); err != nil {
		f.Fatal(err)
	}
}

// TestReconcilerRenewal checks when a renewal sends the cluster to the Reconciler, and what it contains.
func TestReconcilerRenewal(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newReconcilerFixture(t, db)

		if issued := f.run(validity/2 - time.Minute); issued != 0 {
			t.Errorf("a fresh kubeconfig is renewed %d times", issued)
		}

		if issued := f.run(time.Minute); issued != 1 {
			t.Errorf("after half of its validity, %d kubeconfigs are issued", issued)
		}

		renewed := f.simulated.Clusters()["r-one"]
		if renewed.Kyma.Version != "1.0.0" || renewed.Runtime.Name != "c-one" || !strings.HasPrefix(renewed.Runtime.Description, "renewal ") ||
			!strings.Contains(renewed.Kubeconfig, "client-certificate-data") || renewed.Kyma.Components[0].Configuration[0].Value != "c-one.example.com" ||
			renewed.Kyma.Components[0].Configuration[1].Value != "secret-value" {
			t.Errorf("the Reconciler has %+v", renewed)
		}

		first := f.credential().Credential
		if rest := first.ExpiresAt.Sub(f.clock.Now()); rest < validity-time.Minute || rest > validity+time.Minute || !first.RenewingUntil.IsZero() {
			t.Errorf("the record has %+v", first)
		}

		if issued := f.run(validity / 2); issued != 1 || f.simulated.Clusters()["r-one"].Kubeconfig == renewed.Kubeconfig {
			t.Errorf("%d more kubeconfigs are issued, or the Reconciler has the former one", issued)
		}

		f.wantExpiring(0)
		f.wantFailures(0)
		f.wantEvents("renewed: the kubeconfig for the Reconciler was renewed × 2")
	})
}

// FindObject implements reconciling.Objects.
func (f *reconcilerFixture) FindObject(context.Context, string, string, string) (environment.OutsideObject, error) {
	return f.credential(), nil
}

// SetObject implements reconciling.Objects.
func (f *reconcilerFixture) SetObject(ctx context.Context, by process.Record, object environment.OutsideObject) error {
	return f.records.Set(ctx, by, object, f.clock.Now())
}

// send sends the Kyma configuration, as an operation of the given kind does.
func (f *reconcilerFixture) send(kind, version string) {
	f.Helper()

	f.held = storagetest.Hold(f.T, f.db, f.operations, kind, "one")

	instance, err := f.instances.Get(f.Context(), f.db.Reader(), "one")
	if err != nil {
		f.Fatal(err)
	}

	instance.Request.Cluster.Kyma.Version = version
	instance.Request.Cluster.Kyma, _ = f.Complete(f.Context(), instance)
	instance.Request.Cluster.Kyma, _ = f.Overrides(f.Context(), instance)

	steps := reconciling.Reconciler{Client: f.calls, Objects: f, Kubeconfigs: f, ShootDomain: "example.com", Limit: time.Hour}

	operation := process.NewOperation(f.held, environment.Data{Instance: instance}, f.clock.Now())
	if _, wait, err := steps.Apply(f.Context(), operation, instance); err != nil || wait > 0 {
		f.Fatalf("the registration is repeated after %s, %v", wait, err)
	}

	f.finish()
}

// TestRenewalKeepsConfiguration changes the overrides between a registration and a renewal. The renewal must send the configuration of the
// last operation. If an earlier release ran that operation, no configuration is stored, and the renewal must send the changed one.
func TestRenewalKeepsConfiguration(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newReconcilerFixture(t, db)

		renewed := func(reason, version, password string) {
			t.Helper()

			before := f.simulated.Clusters()["r-one"]

			for range 2 { // the second renewal follows one that has changed the record
				f.run(validity / 2)
			}

			after := f.simulated.Clusters()["r-one"]
			if after.Kubeconfig == before.Kubeconfig || after.Kyma.Version != version || after.Kyma.Components[0].Configuration[1].Value != password {
				t.Errorf("%s: the Reconciler has %+v", reason, after)
			}

			if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(reconciler.Cluster{}, "Kubeconfig", "Runtime.Description")); (diff == "") != (password != "fourth") {
				t.Errorf("%s: -before +after\n%s", reason, diff)
			}
		}

		f.password = "first"
		f.send(environment.KindProvision, "1.0.0")

		f.password = "second"
		renewed("created", "1.0.0", "first")
		f.send(environment.KindUpdate, "1.1.0")

		f.password = "third"
		renewed("upgraded", "1.1.0", "second")

		// An earlier release sends the configuration and stores none.
		f.clock.Step(time.Minute)

		f.held = storagetest.Hold(t, db, f.operations, environment.KindResume, "one")
		f.cluster(environment.OutsideCreated, environment.NewCredential(f.clock.Now(), f.clock.Now().Add(validity)))
		f.finish()

		f.password = "fourth"
		renewed("changed by an earlier release", "1.0.0", "fourth")

		stored, err := storage.Get[string](t.Context(), db.Reader(), `SELECT configuration FROM outside_configurations`)
		if err != nil || strings.Contains(stored, "second") || strings.Contains(stored, "1.1.0") {
			t.Errorf("stored in clear: %q, %v", stored, err)
		}
	})
}

// TestReconcilerFaults checks the text of a failed renewal, the time of the next one, and whether operations wait for it. Each fault lasts
// for one renewal.
//
//faults:table reconciler.md#current-kubeconfigs
func TestReconcilerFaults(t *testing.T) {
	reject := func(f *reconcilerFixture) { f.err = failure.New(failure.Transient, "the Provisioner does not respond") }

	for name, test := range map[string]struct {
		reason string
		fault  simulator.Fault
		change func(*reconcilerFixture)
		want   string
		// uncertain reports that the Reconciler may still execute the request.
		uncertain bool
	}{
		"the Reconciler is unreachable, slow, returns no JSON, or its response is lost/unreachable":                  {reason: "nobody knows how far the request got", fault: simulator.Fault{Unsent: true, Times: 2}, want: "the Reconciler cannot be reached", uncertain: true},
		"the Reconciler is unreachable, slow, returns no JSON, or its response is lost/lost":                         {reason: "the kubeconfig was taken over", fault: simulator.Fault{Lost: true, Times: 2}, want: "the Reconciler cannot be reached", uncertain: true},
		"the Reconciler is unreachable, slow, returns no JSON, or its response is lost/slow":                         {reason: "the request is executed later", fault: simulator.Fault{Delay: time.Minute}, want: "the Reconciler did not respond within 2s", uncertain: true},
		"the Reconciler is unreachable, slow, returns no JSON, or its response is lost/no JSON":                      {reason: "no JSON", fault: simulator.Fault{Body: "<html>"}, want: "a response that is not the expected JSON", uncertain: true},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/400":                                 {reason: "the runtime does not respond", fault: simulator.Fault{Status: http.StatusBadRequest}, want: "HTTP status 400"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/401":                                 {reason: "an operator can correct the address", fault: simulator.Fault{Status: http.StatusUnauthorized}, want: "rejects the credentials"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/403":                                 {reason: "an operator can correct the address", fault: simulator.Fault{Status: http.StatusForbidden}, want: "rejects the credentials"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/409":                                 {reason: "a change at the same time", fault: simulator.Fault{Status: http.StatusConflict}, want: "HTTP status 409"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/429":                                 {reason: "the pause is long enough", fault: simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 3600}, want: "HTTP status 429"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/500":                                 {reason: "the Reconciler may recover", fault: simulator.Fault{Status: http.StatusInternalServerError}, want: "HTTP status 500"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/503 with Retry-After":                {reason: "the pause is long enough", fault: simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 3600}, want: "HTTP status 503"},
		"400, 401, 403, 409, 429, 500 and other statuses, even with Retry-After/503":                                 {reason: "an overloaded system can recover", fault: simulator.Fault{Status: http.StatusServiceUnavailable}, want: "HTTP status 503"},
		"the Provisioner issues no kubeconfig, or the control plane with the overrides is unreachable/Provisioner":   {reason: "no kubeconfig is issued", change: reject, want: "the Provisioner does not respond"},
		"the Provisioner issues no kubeconfig, or the control plane with the overrides is unreachable/control plane": {reason: "the values of Kyma are missing", change: func(f *reconcilerFixture) { f.configuration = failure.New(failure.Transient, "no overrides") }, want: "no overrides"},
		"the Provisioner issues no kubeconfig, or the control plane with the overrides is unreachable/detail":        {reason: "a report may quote secrets", change: func(f *reconcilerFixture) { f.err = failure.New(failure.Transient, "away").WithDetail("hush") }, want: "away"},
		"the Provisioner issues no kubeconfig, or the control plane with the overrides is unreachable/unexpected":    {reason: "the text reveals nothing", change: func(f *reconcilerFixture) { f.err = errors.New("hush") }, want: "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newReconcilerFixture(t, storagetest.SQLite(t))

			if test.change != nil {
				test.change(f)
			} else {
				f.simulated.Inject(test.fault)
			}

			f.run(validity / 2)
			f.wantFailures(1)

			failed := f.credential().Credential
			if !strings.Contains(failed.Problem, test.want) || strings.Contains(failed.Problem, "hush") || failed.RenewingUntil.After(f.clock.Now()) != test.uncertain {
				t.Errorf("%s: the record has %+v, want %q", test.reason, failed, test.want)
			}

			if wait := failed.RenewAt.Sub(f.clock.Now()).Round(time.Millisecond); wait != 5*time.Minute {
				t.Errorf("%s: the renewal is repeated after %s", test.reason, wait)
			}

			f.wantEvents("failed: renewing the kubeconfig for the Reconciler failed: " + failed.Problem + " × 1")
			f.wantShown("reconciler.md#current-kubeconfigs", name)
			f.simulated.Reset()
			f.err, f.configuration = nil, nil

			if issued := f.run(5 * time.Minute); issued != 1 {
				t.Errorf("%s: after the fault, %d kubeconfigs are issued", test.reason, issued)
			}

			if renewed := f.credential().Credential; renewed.Problem != "" || !renewed.RenewingUntil.IsZero() || !renewed.IssuedAt.After(failed.IssuedAt) ||
				!strings.Contains(f.simulated.Clusters()["r-one"].Kubeconfig, "client-certificate-data") {
				t.Errorf("%s: afterwards, the record has %+v", test.reason, renewed)
			}
		})
	}
}

// TestReconcilerDuringOperation checks that a renewal waits for an operation of the instance, and that an operation that begins
// during a renewal knows how long to wait.
//
//faults:row reconciler.md#current-kubeconfigs the instance has an unfinished operation
//faults:row reconciler.md#current-kubeconfigs an operation begins during a renewal
//faults:row reconciler.md#current-kubeconfigs the runtime is being removed, or is left over
func TestReconcilerDuringOperation(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newReconcilerFixture(t, db)
		f.held = storagetest.Hold(t, db, f.operations, environment.KindUpdate, "one")

		if issued := f.run(validity / 2); issued != 0 || len(f.simulated.Operations()) != 1 {
			t.Errorf("during an operation, %d kubeconfigs are issued", issued)
		}

		f.wantShown("reconciler.md#current-kubeconfigs", "the instance has an unfinished operation")

		f.finish()

		if issued := f.run(5 * time.Minute); issued != 1 {
			t.Errorf("after the operation, %d kubeconfigs are issued", issued)
		}

		f.during = func() {
			f.held = storagetest.Hold(t, db, f.operations, environment.KindDeprovision, "one")
			f.cluster(environment.OutsideRemoving, environment.Credential{})

			if until := f.credential().Credential.RenewingUntil; !until.After(f.clock.Now()) {
				t.Errorf("the deletion waits until %s for the renewal", until)
			}
		}

		if issued := f.run(validity / 2); issued != 1 {
			t.Errorf("the renewal in progress issues %d kubeconfigs", issued)
		}

		f.during = nil

		if object := f.credential(); object.State != environment.OutsideRemoving || !object.Credential.RenewingUntil.IsZero() {
			t.Errorf("after the renewal, the record has %+v", object)
		}

		if issued := f.run(24 * time.Hour); issued != 0 {
			t.Errorf("a runtime that is being removed is renewed %d times", issued)
		}

		f.cluster(environment.OutsideLeftOver, environment.Credential{})

		if issued := f.run(24 * time.Hour); issued != 0 {
			t.Errorf("a runtime that is left over is renewed %d times", issued)
		}
	})
}

// TestOtherRuntime checks that the Reconciler gets no cluster of an instance whose Kyma it does not install.
//
//faults:row reconciler.md#current-kubeconfigs the creation has failed before a version was chosen, or the Reconciler does not install the Kyma of the instance
func TestOtherRuntime(t *testing.T) {
	f := newReconcilerFixture(t, storagetest.SQLite(t))

	if err := f.records.Set(t.Context(), storagetest.Hold(t, f.db, f.operations, environment.KindUpdate, "two"), environment.OutsideObject{
		InstanceID: "one", System: environment.SystemReconciler, Kind: environment.KindCluster, Key: "r-former", State: environment.OutsideCreated,
	}, f.clock.Now()); err != nil {
		t.Fatal(err)
	}

	f.run(validity / 2)
	f.wantFailures(1)

	if problem := f.credential().Credential.Problem; !strings.Contains(problem, "does not install Kyma on the runtime") || len(f.simulated.Operations()) != 1 {
		t.Errorf("the record has the problem %q, the Reconciler has the calls %v", problem, f.simulated.Operations())
	}

	f.wantShown("reconciler.md#current-kubeconfigs",
		"the creation has failed before a version was chosen, or the Reconciler does not install the Kyma of the instance")

	for reason, kyma := range map[string]environment.Kyma{
		"no version was chosen": {Installer: environment.InstallerReconciler},
		"another installer":     {Installer: environment.InstallerProvisioner, Version: "1.0.0"},
	} {
		instance := environment.Instance{ID: "one", RuntimeID: "r-one"}
		instance.Request.Cluster.Kyma = &kyma

		err := f.replicas[0].Holders[environment.SystemReconciler].Replace(t.Context(), environment.OutsideObject{Key: "r-one"}, instance, "kubeconfig", nil)
		if !failure.Is(err, failure.Permanent) || !strings.Contains(err.Error(), "does not install Kyma on the runtime") || len(f.simulated.Operations()) != 1 {
			t.Errorf("%s: %v, the Reconciler has the calls %v", reason, err, f.simulated.Operations())
		}
	}
}

// TestReplicasRenewTogether lets two replicas look for more kubeconfigs than one search renews.
func TestReplicasRenewTogether(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newReconcilerFixture(t, db)
		held := storagetest.Hold(t, db, f.operations, environment.KindUpdate, "other")

		for i := range 59 {
			id := "i" + string(rune('A'+i))
			instance := environment.Instance{ID: id, ShootName: "c-" + id, RuntimeID: "r-" + id, CreatedAt: f.clock.Now(), UpdatedAt: f.clock.Now()}
			instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Installer: environment.InstallerReconciler}

			if err := db.InTx(t.Context(), func(tx storage.Tx) error { return storagetest.Insert(t.Context(), tx, f.instances, instance) }); err != nil {
				t.Fatal(err)
			}

			if err := f.records.Set(t.Context(), held, environment.OutsideObject{
				InstanceID: id, System: environment.SystemReconciler, Kind: environment.KindCluster, Key: "r-" + id, State: environment.OutsideCreated,
			}, f.clock.Now()); err != nil {
				t.Fatal(err)
			}
		}

		f.clock.Step(validity / 2)

		for _, want := range []int{50, 60, 60} {
			f.clock.Step(10 * time.Second)

			var running sync.WaitGroup

			for _, replica := range f.replicas {
				running.Go(func() {
					if err := replica.Renew(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}

			running.Wait()

			if f.issued != want {
				t.Errorf("%d kubeconfigs are issued, want %d", f.issued, want)
			}
		}
	})
}
