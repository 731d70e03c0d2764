package provisioning

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

type runtimeOrder struct {
	instance     environment.Instance
	targetSecret string
	earlier      []string
}

// fakeProvisioner is a Provisioner that creates one runtime for each idempotency key.
type fakeProvisioner struct {
	err    error
	orders map[string]runtimeOrder
	status provisionerclient.Operation
}

func (f *fakeProvisioner) OrderRuntime(_ context.Context, caller provisionerclient.Caller, instance environment.Instance, targetSecret string,
	earlier ...string,
) (provisionerclient.Operation, error) {
	if f.err != nil {
		return provisionerclient.Operation{}, f.err
	}

	if f.orders == nil {
		f.orders = map[string]runtimeOrder{}
	}

	f.orders[caller.IdempotencyKey] = runtimeOrder{instance, targetSecret, earlier}

	return provisionerclient.Operation{ID: "operation-of-" + caller.IdempotencyKey, RuntimeID: "runtime-of-" + caller.IdempotencyKey}, nil
}

func (f *fakeProvisioner) OperationStatus(context.Context, string, string) (provisionerclient.Operation, error) {
	return f.status, f.err
}

type fakeInstances struct {
	instance environment.Instance
	err      error
}

func (f *fakeInstances) Find(context.Context, string) (environment.Instance, error) {
	return f.instance, f.err
}

func (f *fakeInstances) SetRuntime(_ context.Context, _ process.Record, _ environment.Instance, runtimeID string) error {
	if f.err == nil {
		f.instance.RuntimeID = runtimeID
	}

	return f.err
}

func (f *fakeInstances) SetDashboardURL(_ context.Context, _ process.Record, _ environment.Instance, address string) error {
	if f.err == nil {
		f.instance.DashboardURL = address
	}

	return f.err
}

func (f *fakeInstances) Resume(environment.Instance) process.Effect { return nil }

var errAway = errors.New("the database is unreachable")

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func instance() environment.Instance {
	return environment.Instance{
		ID: "instance-1", GlobalAccountID: "tenant-1", SubAccountID: "sub-1", Provider: "aws", Region: "eu-central-1",
		Name: "first", ShootName: "c-1234567",
		Request: environment.Request{Cluster: environment.Cluster{
			KubernetesVersion: "1.35.4", MachineType: "m6i.large", VolumeType: "gp3", VolumeSizeGB: 80,
			AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1, Zones: []string{"eu-central-1a"}, NodesCIDR: "10.250.0.0/16",
			Purpose: "evaluation", Administrators: []string{"admin@example.com"},
		}},
	}
}

func newOperation() Operation {
	return process.NewOperation(process.Record{ID: "op-1", InstanceID: "instance-1"},
		environment.Data{Instance: instance(), Provisioning: "op-1"}, began)
}

// runStage runs the steps of a stage like the engine and expects all of them to be done.
func runStage(t *testing.T, operation Operation, steps ...process.Step[environment.Data]) Operation {
	t.Helper()

	for _, step := range steps {
		var (
			wait time.Duration
			err  error
		)

		operation, wait, err = step.Run(t.Context(), operation, logging.Discard())
		if err != nil || wait != 0 {
			t.Fatalf("%s: %s, %v", step.Name(), wait, err)
		}
	}

	return operation
}

func createStage(provisioner *fakeProvisioner, instances *fakeInstances) []process.Step[environment.Data] {
	return []process.Step[environment.Data]{
		initialization(fakeKyma{}, ""),
		resolveTargetSecret(StaticAccounts{"aws": "aws-account"}),
		createRuntime{provisioner: provisioner, instances: instances},
	}
}

func TestCreateRuntimeStage(t *testing.T) {
	provisioner, instances := &fakeProvisioner{}, &fakeInstances{instance: instance()}

	first := runStage(t, newOperation(), createStage(provisioner, instances)...)
	again := runStage(t, newOperation(), createStage(provisioner, instances)...) // a crash lost the data of the first run

	if first.Data.Instance.RuntimeID != "runtime-of-op-1" || again.Data.Instance.RuntimeID != first.Data.Instance.RuntimeID {
		t.Errorf("runtimes %q and %q, want the same", first.Data.Instance.RuntimeID, again.Data.Instance.RuntimeID)
	}

	if len(provisioner.orders) != 1 {
		t.Errorf("ordered under %d keys, want one", len(provisioner.orders))
	}

	if first.WaitingFor != "provisioner operation operation-of-op-1" || !first.Data.Ordered || instances.instance.RuntimeID == "" {
		t.Errorf("waits for %q, ordered %t, recorded runtime %q", first.WaitingFor, first.Data.Ordered, instances.instance.RuntimeID)
	}

	order := provisioner.orders["op-1"]
	if order.targetSecret != "aws-account" || order.instance.ShootName != "c-1234567" || order.instance.Provider != "aws" {
		t.Errorf("order: %+v", order)
	}
}

func TestCreateRuntimeFailures(t *testing.T) {
	cases := map[string]struct {
		reason      string
		provisioner *fakeProvisioner
		instances   *fakeInstances
		want        failure.Kind
	}{
		"provisioner away": {
			reason:      "errors of the Provisioner are passed on unchanged",
			provisioner: &fakeProvisioner{err: failure.New(failure.Transient, "away")}, instances: &fakeInstances{},
			want: failure.Transient,
		},
		"refused": {
			reason:      "a rejected order is not sent again",
			provisioner: &fakeProvisioner{err: failure.New(failure.Permanent, "refused")}, instances: &fakeInstances{},
			want: failure.Permanent,
		},
		"database away": {
			reason:      "if the response cannot be recorded, the order is repeated",
			provisioner: &fakeProvisioner{}, instances: &fakeInstances{err: errAway},
			want: failure.Transient,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			operation := runStage(t, newOperation(), initialization(fakeKyma{}, ""), resolveTargetSecret(StaticAccounts{"aws": "s"}))

			got, wait, err := createRuntime{provisioner: c.provisioner, instances: c.instances}.Run(t.Context(), operation, logging.Discard())
			if !failure.Is(err, c.want) || wait != 0 {
				t.Errorf("%s: got %s, %v", c.reason, wait, err)
			}

			if !got.Data.Ordered {
				t.Errorf("%s: the intent is not recorded", c.reason)
			}
		})
	}
}

func TestTargetSecretIsChosenOnce(t *testing.T) {
	operation := runStage(t, newOperation(), initialization(fakeKyma{}, ""), resolveTargetSecret(StaticAccounts{"aws": "old"}))
	operation = runStage(t, operation, initialization(fakeKyma{}, ""), resolveTargetSecret(StaticAccounts{"aws": "new"}))

	if operation.Data.TargetSecret != "old" {
		t.Errorf("the credentials changed to %q", operation.Data.TargetSecret)
	}

	_, _, err := resolveTargetSecret(StaticAccounts(nil)).Run(t.Context(), newOperation(), logging.Discard())
	if !failure.Is(err, failure.Permanent) {
		t.Errorf("a provider without credentials returned %v", err)
	}
}

// TestRetryResolvesTheTargetSecretAgain checks that a retry uses the corrected configuration and records the credentials of the
// failed order, and that its choice does not change when its steps run again.
func TestRetryResolvesTheTargetSecretAgain(t *testing.T) {
	provisioner, instances := &fakeProvisioner{}, &fakeInstances{instance: instance()}
	retry := func(data environment.Data, secret string) Operation {
		operation := process.NewOperation(process.Record{ID: "op-2", InstanceID: "instance-1"}, data, began)
		for range 2 { // the second run repeats the order of the first
			operation.Data.Instance = instance()
			operation = runStage(t, operation, resolveTargetSecret(StaticAccounts{"aws": secret}),
				createRuntime{provisioner: provisioner, instances: instances})
			secret = "changed during the retry"
		}

		return operation
	}

	failed := environment.Data{Instance: instance(), Provisioning: "op-1", Ordered: true, TargetSecret: "wrong"}

	if got := retry(failed, "right").Data; got.TargetSecret != "right" || !slices.Equal(got.EarlierSecrets, []string{"wrong"}) {
		t.Errorf("a retry uses %q and records %q as earlier, want the corrected configuration", got.TargetSecret, got.EarlierSecrets)
	}

	want := runtimeOrder{instance(), "right", []string{"wrong"}}
	if diff := cmp.Diff(want, provisioner.orders["op-2"], cmp.AllowUnexported(runtimeOrder{})); diff != "" {
		t.Errorf("the order of the retry, -want +got:\n%s", diff)
	}

	if got := retry(failed, "wrong").Data; got.TargetSecret != "wrong" || len(got.EarlierSecrets) != 0 {
		t.Errorf("with an unchanged configuration a retry uses %q, earlier %q", got.TargetSecret, got.EarlierSecrets)
	}
}

func TestCheckRuntime(t *testing.T) {
	cases := map[string]struct {
		reason   string
		status   provisionerclient.Operation
		err      error
		wantWait time.Duration
		wantKind failure.Kind
		wantText string
	}{
		"succeeded": {reason: "the runtime is ready", status: provisionerclient.Operation{State: provisionerclient.StateSucceeded}},
		"in progress": {
			reason: "the feed determines the interval", status: provisionerclient.Operation{State: provisionerclient.StateInProgress},
			wantWait: 7 * time.Second,
		},
		"unknown state": {
			reason: "an unknown state counts as unfinished", status: provisionerclient.Operation{State: "Dreaming"},
			wantWait: 7 * time.Second,
		},
		"failed": {
			reason: "the meaning of the Provisioner's reason reaches the user",
			status: provisionerclient.Operation{
				State:     provisionerclient.StateFailed,
				LastError: provisionerclient.LastError{Message: "no quota", Reason: "ERR_INFRA_QUOTA_EXCEEDED", Component: "gardener"},
			},
			wantKind: failure.Permanent, wantText: "Gardener reports ERR_INFRA_QUOTA_EXCEEDED: raise the quota of the cloud account or remove unused resources, then retry",
		},
		"away": {
			reason: "errors are left to the retry policy", err: failure.New(failure.Transient, "away"),
			wantKind: failure.Transient, wantText: "away",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			step := checkRuntime{waiter: provisionerwait.Waiter{
				Operations: &fakeProvisioner{status: c.status, err: c.err}, Limit: time.Hour,
				Pace: func(time.Duration) time.Duration { return 7 * time.Second },
			}}

			_, wait, err := step.Run(t.Context(), newOperation(), logging.Discard())
			if wait != c.wantWait || (err == nil) != (c.wantKind == "") {
				t.Fatalf("%s: got %s, %v", c.reason, wait, err)
			}

			if err != nil && (failure.KindOf(err) != c.wantKind || failure.Of(err).Text != c.wantText) {
				t.Errorf("%s: got %s %q", c.reason, failure.KindOf(err), failure.Of(err).Text)
			}
		})
	}
}

// fakeConsoles knows the console of a runtime.
type fakeConsoles struct {
	address string
	err     error
	asked   int
}

func (f *fakeConsoles) Console(context.Context, string, string) (string, error) {
	f.asked++

	return f.address, f.err
}

func TestConsoleBecomesTheDashboard(t *testing.T) {
	const configured, console = "https://dashboard.example.com/instance-1", "https://console.example.com"

	cases := map[string]struct {
		reason    string
		consoles  *fakeConsoles
		kind      provisionerclient.Kind
		wantAsked int
		want      string
	}{
		"Console": {"Director has it", &fakeConsoles{address: console}, provisionerclient.KindOurs, 1, console},
		"None":    {"an instance without a console keeps its dashboard", &fakeConsoles{}, provisionerclient.KindOurs, 1, configured},
		"Former":  {"the Kyma Provisioner knows no consoles", &fakeConsoles{address: console}, provisionerclient.KindKyma, 0, configured},
		"Refused": {"a console is not needed", &fakeConsoles{err: failure.New(failure.Permanent, "refused")}, provisionerclient.KindOurs, 1, configured},
		// Attempts at 0 s, 10 s, … 180 s.
		"Away": {"after three minutes the operation continues", &fakeConsoles{err: failure.New(failure.Transient, "away")}, provisionerclient.KindOurs, 19, configured},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			instances := &fakeInstances{instance: instance()}
			instances.instance.DashboardURL = configured
			step := checkRuntime{
				waiter: provisionerwait.Waiter{
					Operations: &fakeProvisioner{status: provisionerclient.Operation{State: provisionerclient.StateSucceeded}}, Limit: time.Hour,
				},
				consoles: c.consoles, instances: instances, kind: func() provisionerclient.Kind { return c.kind },
			}

			operation, now := newOperation(), began

			for {
				after, wait, err := step.Run(t.Context(), operation, logging.Discard())
				if err != nil {
					t.Fatalf("%s: %v", c.reason, err)
				}

				if operation = after; wait == 0 {
					break
				}

				now = now.Add(wait)
				operation = process.NewOperation(after.Record, after.Data, now)
			}

			if got := instances.instance.DashboardURL; got != c.want || c.consoles.asked != c.wantAsked || !operation.Data.ConsoleSince.IsZero() {
				t.Errorf("%s: dashboard %q, asked %d times", c.reason, got, c.consoles.asked)
			}
		})
	}

	step := checkRuntime{
		waiter:   provisionerwait.Waiter{Operations: &fakeProvisioner{status: provisionerclient.Operation{State: provisionerclient.StateSucceeded}}},
		consoles: &fakeConsoles{address: console}, kind: func() provisionerclient.Kind { return provisionerclient.KindOurs },
		instances: &fakeInstances{err: errAway},
	}
	if _, _, err := step.Run(t.Context(), newOperation(), logging.Discard()); !errors.Is(err, errAway) {
		t.Errorf("a console that cannot be recorded is lost: %v", err)
	}
}

func TestStartReadsTheInstanceAgain(t *testing.T) {
	now := instance()
	now.Name = "renamed"

	operation := runStage(t, newOperation(), start(&fakeInstances{instance: now}))
	if diff := cmp.Diff(now, operation.Data.Instance); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	if _, _, err := start(&fakeInstances{err: errAway}).Run(t.Context(), newOperation(), logging.Discard()); err == nil {
		t.Error("a failure to read the instance returns no error")
	}
}

// fakeKyma chooses its version for instances with Kyma.
type fakeKyma struct{ version string }

func (k fakeKyma) Complete(_ context.Context, instance environment.Instance) (*environment.Kyma, error) {
	completed := *instance.Request.Cluster.Kyma
	if completed.Version == "" {
		completed.Version = k.version
	}

	completed.Installation = &environment.KymaInstallation{Version: completed.Version}

	return &completed, nil
}

func (fakeKyma) Overrides(_ context.Context, instance environment.Instance) (*environment.Kyma, error) {
	return instance.Request.Cluster.Kyma, nil
}

// TestKymaVersionIsChosenOnce checks that a repeated stage keeps the version and completes the installation again, that a retry
// chooses again, and that a version in the order is never replaced.
func TestKymaVersionIsChosenOnce(t *testing.T) {
	operation := newOperation()
	operation.Data.Instance.Request.Cluster.Kyma = &environment.Kyma{Modules: []string{"eventing"}}

	first := runStage(t, operation, initialization(fakeKyma{"1.0.0"}, ""))
	again := first
	again.Data.Instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Modules: []string{"eventing"}} // as stored
	again = runStage(t, again, initialization(fakeKyma{"2.0.0"}, ""))

	for name, got := range map[string]Operation{"first": first, "again": again} {
		kyma := got.Data.Instance.Request.Cluster.Kyma
		if kyma.Version != "1.0.0" || kyma.Installation == nil || kyma.Installation.Version != "1.0.0" {
			t.Errorf("%s: %+v", name, kyma)
		}
	}

	retried := again
	retried.ID = "retry"
	retried = runStage(t, retried, initialization(fakeKyma{"2.0.0"}, ""))

	if got := retried.Data.Instance.Request.Cluster.Kyma.Version; got != "2.0.0" {
		t.Errorf("the retry chose %s", got)
	}

	operation.Data.Instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.5.0", Ordered: true}
	ordered := runStage(t, operation, initialization(fakeKyma{"2.0.0"}, ""))

	if got := ordered.Data.Instance.Request.Cluster.Kyma.Version; got != "1.5.0" {
		t.Errorf("the ordered version became %s", got)
	}

	if operation.Data.Instance.Request.Cluster.Kyma.Installation != nil {
		t.Error("the step changed an object that it does not own")
	}
}

// TestRepeatedStages checks how often the steps that call runtimes, the control plane and the Reconciler are repeated, as the pages on these
// systems say.
func TestRepeatedStages(t *testing.T) {
	want := process.RetryPolicy{First: time.Second, Cap: time.Minute, Factor: 2, Jitter: 0.2, Window: time.Hour}
	left := map[string]bool{
		"Inject_BTP_Operator_Credentials": true, "Create_Cluster_Configuration": true, "Sync_Kubeconfig": true, "Apply_Kyma": true, "Check_Kyma_Resource": true,
	}

	for _, stage := range Process(Options{}).Stages {
		for _, task := range stage.Steps {
			if !left[task.Step.Name()] {
				continue
			}

			delete(left, task.Step.Name())

			if diff := cmp.Diff(want, stage.Retry); diff != "" {
				t.Errorf("%s: -want +got\n%s", task.Step.Name(), diff)
			}
		}
	}

	if len(left) > 0 {
		t.Errorf("there are no steps %v", left)
	}
}

// TestResultIsDescribed checks that users see the result of an operation, even if operators skip Get_Kubeconfig, or if a retry
// starts after it.
func TestResultIsDescribed(t *testing.T) {
	t.Parallel()

	if described := Process(Options{}).Succeeded; described != "Runtime is ready" {
		t.Errorf("a creation succeeds with %q", described)
	}

	if described := Resumption(Options{}).Succeeded; described != "" {
		t.Errorf("a resumption succeeds with %q instead of the description of Resume_Instance", described)
	}
}
