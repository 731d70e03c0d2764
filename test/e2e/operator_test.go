package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/progress"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// faults orders what goes wrong with clusters.
func (l landscape) faults(orders map[string]string) {
	l.Helper()

	orderFaults(l.TB, l.garden.Client(), orders)
}

// changeShoot changes the only Shoot. Who else changes it meanwhile is let pass first.
func (l landscape) changeShoot(change func(*gardencorev1beta1.Shoot)) {
	l.Helper()

	l.until("the Shoot to be changed", func() bool {
		shoot := l.shoots()[0]
		change(&shoot)

		return l.garden.Client().Update(context.Background(), &shoot) == nil
	})
}

// failed polls until the instance's operation has failed for the reason.
func (p platform) failed(id, why string) {
	p.Helper()

	last := p.poll(id, func(got answer) bool { return got.text("state") != "in progress" })
	if last.text("state") != "failed" || !strings.Contains(last.text("description"), why) {
		p.Fatalf("the operation on %s ended with %d %v, want that it failed: %s", id, last.Status, last.Body, why)
	}
}

// runtime is what the operator API tells of an instance.
func (p platform) runtime(id string) operatorapi.Runtime {
	p.Helper()

	var list operatorapi.RuntimeList

	p.decode(p.ebctl("instance", "list", "-o", "json"), &list)

	for _, runtime := range list.Data {
		if runtime.InstanceID == id {
			return runtime
		}
	}

	p.Fatalf("there is no instance %s", id)

	return operatorapi.Runtime{}
}

func (p platform) lastOperation(id string) string {
	p.Helper()

	return p.runtime(id).Status.LastOperation.ID
}

func reason(why string) operatorapi.Intervention { return operatorapi.Intervention{Reason: why} }

// intervene is `ebctl operation cancel`, retry or skip.
func (p platform) intervene(verb, operation, why string, flags ...string) operatorapi.Operation {
	p.Helper()

	var told operatorapi.Operation

	p.decode(p.ebctl(append([]string{"operation", verb, operation, "--reason", why, "-o", "json"}, flags...)...), &told)

	return told
}

// intervened is intervene, and waits for the end.
func (p platform) intervened(verb, operation, why string) operatorapi.Operation {
	p.Helper()

	return p.intervene(verb, operation, why, "--wait")
}

func (p platform) decode(text string, into any) {
	p.Helper()

	if err := json.Unmarshal([]byte(text), into); err != nil {
		p.Fatalf("decoding %s: %v", text, err)
	}
}

// ebctl runs the tool and returns what it prints.
func (p platform) ebctl(args ...string) string {
	p.Helper()

	var output, problems bytes.Buffer

	code := ebctl.App{
		Out: &output, Err: &problems, Environment: func(string) string { return "" }, Clock: clock.RealClock{},
		Terminal: func() (progress.Size, bool) { return progress.Size{}, false }, PollInterval: look,
	}.Run(p.Context(), append(args, "--address", p.url, "--username", p.user, "--password", p.password))
	if code != 0 {
		p.Fatalf("ebctl %v ended with %d: %s", args, code, problems.String())
	}

	return output.String()
}
