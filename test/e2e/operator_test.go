package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/test/harness"
)

// faults replaces the faults that the fake garden injects into its clusters.
func (e env) faults(faults map[string]string) {
	e.Helper()
	harness.InjectClusterFaults(e.TB, e.services.Garden, faults)
}

// changeShoot changes the only Shoot of the garden and retries after conflicts.
func (e env) changeShoot(change func(*gardencorev1beta1.Shoot)) {
	e.Helper()

	e.Until("the change of the Shoot", func() bool {
		shoot := e.shoots()[0]
		change(&shoot)

		return e.services.Garden.Client().Update(context.Background(), &shoot) == nil
	})
}

// runtime returns an instance as `ebctl instance list` shows it.
func (p platform) runtime(id string) operatorapi.Runtime {
	p.Helper()

	var list operatorapi.RuntimeList

	p.decode(p.ebctl("instance", "list", "-o", "json"), &list)

	for _, runtime := range list.Data {
		if runtime.InstanceID == id {
			return runtime
		}
	}

	p.Fatalf("the operator API has no instance %s", id)

	return operatorapi.Runtime{}
}

func (p platform) lastOperation(id string) string {
	p.Helper()

	return p.runtime(id).Status.LastOperation.ID
}

func reason(why string) operatorapi.Intervention { return operatorapi.Intervention{Reason: why} }

// intervene runs `ebctl operation` with the verb cancel, retry or skip, and returns the operation that ebctl prints. After a
// retry, this is the new operation.
func (p platform) intervene(verb, operation, why string, flags ...string) operatorapi.Operation {
	p.Helper()

	var operated operatorapi.Operation

	p.decode(p.ebctl(append([]string{"operation", verb, operation, "--reason", why, "-o", "json"}, flags...)...), &operated)

	return operated
}

// interveneAndWait is like intervene, but adds the --wait flag and returns the operation after its end.
func (p platform) interveneAndWait(verb, operation, why string) operatorapi.Operation {
	p.Helper()

	return p.intervene(verb, operation, why, "--wait")
}

func (p platform) decode(text string, into any) {
	p.Helper()

	if err := json.Unmarshal([]byte(text), into); err != nil {
		p.Fatalf("decoding %s: %v", text, err)
	}
}

func (p platform) explain(operation string) string {
	p.Helper()

	return p.ebctl("operation", "explain", operation)
}

// kubeconfig returns an administrator's kubeconfig for the runtime of an instance.
func (p platform) kubeconfig(id string) []byte {
	p.Helper()

	return []byte(p.Send(http.MethodPost, "/runtimes/"+id+"/adminkubeconfig", nil, http.StatusOK).Text("kubeconfig"))
}

// ebctl runs ebctl and returns its output. A failure of the command fails the test.
func (p platform) ebctl(args ...string) string {
	p.Helper()

	output, problems, code := p.tryEbctl(args...)
	if code != 0 {
		p.Fatalf("ebctl %v exited with code %d: %s", args, code, problems)
	}

	return output
}

// tryEbctl runs ebctl and returns its output and its exit code.
func (p platform) tryEbctl(args ...string) (stdout, stderr string, code int) {
	p.Helper()

	var output, problems bytes.Buffer

	code = ebctl.App{
		Out: &output, Err: &problems, Environment: func(string) string { return "" }, Clock: clock.RealClock{},
		Terminal:    func() (follow.Size, bool) { return follow.Size{}, false },
		Interactive: func() bool { return false }, PollInterval: 100 * time.Millisecond,
	}.Run(p.Context(), append(args, "--address", p.URL, "--username", p.User, "--password", p.Password))

	return output.String(), problems.String(), code
}
