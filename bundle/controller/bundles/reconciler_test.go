package bundles

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// TestLongMessage verifies that a long message does not differ from its stored form, so that the same failure is not written and reported
// again.
func TestLongMessage(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	for shift := range 3 {
		bundle := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		message := strings.Repeat("x", shift) + strings.Repeat("€", 2*maxMessage)
		set(bundle, v1alpha1.PhaseFailing, metav1.ConditionFalse, v1alpha1.ReasonUnpackFailed, message)

		text, err := json.Marshal(bundle)
		if err != nil {
			t.Fatal(err)
		}

		stored := &v1alpha1.Bundle{}
		if err := json.Unmarshal(text, stored); err != nil {
			t.Fatal(err)
		}

		if got, want := bundle.Status.Conditions[0].Message, stored.Status.Conditions[0].Message; got != want {
			t.Errorf("the message ends with %q, the stored one with %q", got[len(got)-10:], want[len(want)-10:])
		}

		recorder := events.NewFakeRecorder(1)
		r := &reconciler{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(bundle).WithStatusSubresource(bundle).Build(), events: recorder}

		if _, err := r.writeStatus(t.Context(), &v1alpha1.Bundle{}, bundle); err != nil {
			t.Fatal(err)
		}

		if event := <-recorder.Events; strings.ToValidUTF8(event, "") != event || len(event) > 1024+len("Warning UnpackFailed ") {
			t.Errorf("the event has %d bytes and ends with %q", len(event), event[len(event)-10:])
		}
	}
}
