package operator_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// suspend marks an instance as suspended, like the last step of a suspension.
func (b *bench) suspend(id string) {
	b.Helper()

	instance, err := b.instances.Get(b.Context(), b.db.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	instance.Suspended, instance.RuntimeID = true, ""

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error { return b.instances.Update(b.Context(), tx, instance) }); err != nil {
		b.Fatal(err)
	}
}

func TestExpire(t *testing.T) {
	cases := map[string]struct {
		reason    string
		operation string
		err       error
		want      int
	}{
		"removing": {"the runtime is removed", "op", nil, http.StatusAccepted},
		"removed":  {"the runtime was removed", "", nil, http.StatusOK},
		"unknown":  {"an unknown instance", "", failure.New(failure.NotFound, "none"), http.StatusNotFound},
		"lasting":  {"the plan has no limited lifetime", "", failure.New(failure.Invalid, "lasts"), http.StatusBadRequest},
		"leaving":  {"the instance is being deleted", "", failure.New(failure.Conflict, "leaves"), http.StatusConflict},
	}

	for name, c := range cases {
		b := newBench(t)
		b.expirer.operation, b.expirer.err = c.operation, c.err

		got := b.want(name+": "+c.reason, b.do("operator", "PUT", "/expire/service_instance/a%2Fb"), c.want)
		if c.err == nil && read[operatorapi.Expiration](b, got).Operation != c.operation {
			b.Errorf("%s: %s", name, got.Raw)
		}

		if diff := cmp.Diff([]string{"a/b: expired by operator"}, b.expirer.asked); diff != "" {
			b.Errorf("%s: call: -want +got\n%s", name, diff)
		}

		audited := false
		for _, entry := range b.log.AllEntries() {
			audited = audited || entry.Data[logging.User] == "operator" && entry.Data[logging.InstanceID] == "a/b"
		}

		if !audited {
			b.Errorf("%s: the log does not name the user", name)
		}
	}
}

func TestASuspendedInstanceHasNoKubeconfig(t *testing.T) {
	b := newBench(t)

	for _, id := range []string{"one", "two", "three"} {
		b.endpoint(id, "runtime-"+id)
	}

	b.instance("one", process.Succeeded)
	b.operation("one", environment.KindUpdate, process.InProgress)
	b.want("the runtime is reachable during an update", b.do("", "GET", "/kubeconfig/one"), http.StatusOK)

	b.instance("two", process.Succeeded)
	b.operation("two", environment.KindSuspend, process.InProgress)
	b.want("the runtime is not reachable during a suspension", b.do("", "GET", "/kubeconfig/two"), http.StatusNotFound)

	b.instance("three", process.Succeeded)
	b.operation("three", environment.KindSuspend, process.Succeeded)
	b.suspend("three")
	b.want("the runtime is not reachable after a suspension", b.do("", "GET", "/kubeconfig/three"), http.StatusNotFound)
	b.want("not even for admins", b.do("admin", "POST", "/runtimes/three/adminkubeconfig"), http.StatusNotFound)
}
