package lifecyclemanager

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// FuzzStatus checks that every Kyma resource is decoded or a transient error, and that only the states of a finished installation end the
// wait.
func FuzzStatus(f *testing.F) {
	f.Add(`{"metadata": {"generation": 2}, "status": {"state": "Ready", "conditions": [{"observedGeneration": 1}]}}`)
	f.Add(`{"status": {"state": "Error", "modules": [{"name": "a", "state": "Error", "message": "m"}]}}`)
	f.Add(`[]`)

	f.Fuzz(func(t *testing.T, text string) {
		status, err := decodeStatus([]byte(text))
		if err != nil && !failure.Is(err, failure.Transient) {
			t.Errorf("got %v", err)
		}

		if status.Done() && status.State != Ready && status.State != Warning && status.State != Unmanaged {
			t.Errorf("state %q ends the wait", status.State)
		}
	})
}

// FuzzTemplate checks that the objects of every valid template have references that can be read again.
func FuzzTemplate(f *testing.F) {
	f.Add("apiVersion: operator.kyma-project.io/v1beta2\nkind: Kyma\nmetadata: {namespace: kcp-system}\nspec: {channel: regular}")
	f.Add("apiVersion: a.io/v1\nkind: Kyma\nmetadata: {labels: {a: b}}\nspec: {modules: 7}")
	f.Add("- 1")

	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParseTemplate(text); err != nil {
			return
		}

		objects, err := ObjectsOf(runtimeInstance(), Settings{Template: text, Channel: "fast", Modules: []Module{{Name: "m"}}}, "kcp-system", "")
		if err != nil {
			t.Fatal(err)
		}

		for _, ref := range []Ref{objects.Kyma, objects.Secret} {
			if read, err := ParseRef(ref.String()); err != nil || read != ref {
				t.Errorf("%s: got %+v, %v", ref, read, err)
			}
		}
	})
}
