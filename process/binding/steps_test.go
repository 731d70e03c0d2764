package binding_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/binding"
)

var (
	createdAt  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	errRefused = failure.New(failure.Permanent, "the Shoot is being deleted")
	errAway    = failure.New(failure.Transient, "the upstream does not respond")
	errGone    = failure.New(failure.Permanent, "gone").WithReason(failure.ReasonNotFound, failure.ComponentBrokerDatabase)
)

type effect func() error

// fixture implements the dependencies of the steps. faults maps the name of a call to the error that the call returns. The call
// takes effect nevertheless, as if only its response were lost.
type fixture struct {
	calls           []string
	account, access bool
	// unwanted is the number of the first lookup that reports the binding as removed. Zero means that no lookup does.
	unwanted  int
	instances map[string]environment.Instance
	faults    map[string]error
	// ending reports whether the runtime is being removed.
	ending bool
	// lookups counts the lookups of the binding.
	lookups int
	// granting, if set, is called while an account is being created.
	granting func()
}

func (w *fixture) call(name string) error {
	w.calls = append(w.calls, name)

	return w.faults[name]
}

func (w *fixture) Grant(context.Context, environment.Instance, environment.Binding) (environment.Access, error) {
	w.account = true

	if w.granting != nil {
		w.granting()
	}

	return environment.Access{Kubeconfig: "kubeconfig"}, w.call("grant")
}

func (w *fixture) Revoke(context.Context, environment.Instance, environment.Binding) error {
	w.account = false

	return w.call("revoke")
}

func (w *fixture) Find(_ context.Context, id string) (environment.Instance, error) {
	return w.instances[id], w.call("find")
}

func (w *fixture) WantsBinding(ctx context.Context, _ string) (bool, error) {
	w.lookups++

	err := w.call("wants")
	if w.lookups > 1 {
		err = w.faults["wants again"]
	}

	if w.lookups == 2 && err == nil {
		err = w.faults["second lookup"]
	}

	if ctx.Err() != nil {
		err = ctx.Err()
	}

	return w.unwanted == 0 || w.lookups < w.unwanted, err
}

func (w *fixture) SaveAccess(environment.Binding, environment.Access) process.Effect {
	return effect(func() error {
		w.access = true

		return w.call("keep")
	})
}

func (w *fixture) RuntimeEnding(context.Context, string) (bool, error) {
	return w.ending, w.call("ending")
}

func (w *fixture) RemoveBinding(string) process.Effect {
	return effect(func() error { return w.call("remove") })
}

// execute runs the steps of the process and then its effect. It stops at the first error.
func (w *fixture) execute(ctx context.Context, of func(binding.Options) process.Process[environment.Data]) (process.Operation[environment.Data], error) {
	operation := process.NewOperation(process.Record{ID: "operation"}, environment.Data{
		Instance: environment.Instance{ID: "instance", RuntimeID: "runtime"},
		Binding:  environment.Binding{ID: "b1", InstanceID: "instance", RuntimeID: "runtime"},
	}, createdAt)

	for _, stage := range of(binding.Options{Runtimes: w, Bindings: w}).Stages {
		for _, task := range stage.Steps {
			var err error
			if operation, _, err = task.Step.Run(ctx, operation, logging.Discard()); err != nil {
				return operation, err
			}
		}
	}

	made, is := operation.Effect.(effect)
	if !is {
		return operation, errors.New("the process has no effect")
	}

	return operation, made()
}

func TestBind(t *testing.T) {
	cases := map[string]struct {
		reason   string
		unwanted int
		faults   map[string]error
		calls    []string
		account  bool
		want     failure.Kind // empty for none
	}{
		"made":           {"the account exists, and the row has its credentials", 0, nil, []string{"wants", "grant", "wants", "keep"}, true, ""},
		"removed before": {"no account is created", 1, nil, []string{"wants"}, false, failure.Permanent},
		"removed during": {"the binding was removed during the creation", 2, nil, []string{"wants", "grant", "wants", "revoke"}, false, failure.Permanent},
		"not removed": {
			"a failed cleanup is retried", 2,
			map[string]error{"revoke": errAway},
			[]string{"wants", "grant", "wants", "revoke"},
			false, failure.Transient,
		},
		"runtime gone": {
			"the account is removed", 2,
			map[string]error{"revoke": failure.New(failure.NotFound, "no runtime")},
			[]string{"wants", "grant", "wants", "revoke"},
			false, failure.Permanent,
		},
		"not granted": {"the failure is retried", 0, map[string]error{"grant": errAway}, []string{"wants", "grant", "wants"}, true, failure.Transient},
		"removed during a freeze": {
			"a replica that was frozen immediately removes the account that it created too late", 2,
			map[string]error{"grant": errAway},
			[]string{"wants", "grant", "wants", "revoke"},
			false, failure.Permanent,
		},
		"not looked up": {"a failed lookup is retried", 0, map[string]error{"wants": errAway}, []string{"wants"}, false, failure.Transient},
		"looked up at the second attempt": {
			"the account is removed even if the replica has lost its lease, so that its error is not retried", 3,
			map[string]error{"second lookup": errAway},
			[]string{"wants", "grant", "wants", "revoke"},
			false, failure.Permanent,
		},
		"not looked up again": {
			"credentials of a binding that may be removed are not stored", 0,
			map[string]error{"wants again": errAway},
			[]string{"wants", "grant", "wants"},
			true, failure.Transient,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := &fixture{unwanted: c.unwanted, faults: c.faults}

			var err error

			synctest.Test(t, func(t *testing.T) { _, err = w.execute(t.Context(), binding.Bind) })

			if (err == nil) != (c.want == "") || err != nil && failure.KindOf(err) != c.want {
				t.Errorf("want kind %q, got %v", c.want, err)
			}

			// Failed calls after the creation are repeated.
			if diff := cmp.Diff(c.calls, slices.Compact(w.calls)); diff != "" || w.account != c.account || w.access != (c.want == "") {
				t.Errorf("%s: account %t, access %t, calls -want +got\n%s", c.reason, w.account, w.access, diff)
			}
		})
	}
}

// TestLostLeaseLeavesNoAccount checks that no account is left over if, while it is being created, the run loses its lease and the
// binding is removed.
func TestLostLeaseLeavesNoAccount(t *testing.T) {
	ctx, lose := context.WithCancel(t.Context())
	w := &fixture{unwanted: 2, granting: lose}

	if _, err := w.execute(ctx, binding.Bind); failure.KindOf(err) != failure.Permanent || w.account {
		t.Errorf("account exists: %t, error %v, calls %v", w.account, err, w.calls)
	}
}

func TestUnbind(t *testing.T) {
	existing := map[string]environment.Instance{"instance": {ID: "instance", RuntimeID: "runtime"}}
	replaced := map[string]environment.Instance{"instance": {ID: "instance", RuntimeID: "another"}}

	cases := map[string]struct {
		reason    string
		instances map[string]environment.Instance
		faults    map[string]error
		calls     []string
		want      failure.Kind // empty for none
	}{
		"refused":         {"an operator must look", existing, map[string]error{"revoke": errRefused}, []string{"find", "revoke", "ending"}, failure.Permanent},
		"being deleted":   {"the access ends with the runtime", existing, map[string]error{"revoke": errRefused}, []string{"find", "revoke", "ending", "remove"}, ""},
		"not known":       {"the failure is retried", existing, map[string]error{"revoke": errRefused, "ending": errAway}, []string{"find", "revoke", "ending"}, failure.Transient},
		"removed":         {"the account is removed before the row", existing, nil, []string{"find", "revoke", "remove"}, ""},
		"other runtime":   {"the account was removed with the runtime", replaced, nil, []string{"find", "remove"}, ""},
		"no instance":     {"the account was removed with the instance", nil, map[string]error{"find": errGone}, []string{"find", "remove"}, ""},
		"no runtime":      {"the Provisioner does not know the runtime", existing, map[string]error{"revoke": failure.New(failure.NotFound, "")}, []string{"find", "revoke", "remove"}, ""},
		"runtime away":    {"the failure is retried", existing, map[string]error{"revoke": errAway}, []string{"find", "revoke"}, failure.Transient},
		"database away":   {"the failure is retried", existing, map[string]error{"find": errAway}, []string{"find"}, failure.Transient},
		"row not removed": {"the failure is retried", existing, map[string]error{"remove": errAway}, []string{"find", "revoke", "remove"}, failure.Transient},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := &fixture{account: true, instances: c.instances, faults: c.faults, ending: c.want == ""}

			_, err := w.execute(t.Context(), binding.Unbind)
			if (err == nil) != (c.want == "") || err != nil && failure.KindOf(err) != c.want {
				t.Errorf("want kind %q, got %v", c.want, err)
			}

			if diff := cmp.Diff(c.calls, w.calls); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

func TestProcessesAreValid(t *testing.T) {
	for _, registered := range []process.Process[environment.Data]{binding.Bind(binding.Options{}), binding.Unbind(binding.Options{})} {
		if err := registered.Validate(); err != nil {
			t.Error(err)
		}
	}
}
