package gardener_test

import (
	"context"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// TestAdoptionOfAChangedShoot checks that callers repeat an adoption if the Shoot has changed since they read it. An API server then
// responds with HTTP 422, as for an invalid object, which callers do not repeat.
func TestAdoptionOfAChangedShoot(t *testing.T) {
	rejected := apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, "",
		"testing value /metadata/resourceVersion failed: test failed", 0, false)

	for name, test := range map[string]struct {
		changed bool
		want    failure.Kind
	}{
		"changed Shoot":  {true, failure.Transient},
		"rejected patch": {false, failure.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.apply(runtimeID)
			read := b.get()

			if test.changed {
				b.touch()
			}

			rejecting := b.through(interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return rejected
				},
			})

			changed, err := rejecting.Claim(t.Context(), read, "aws", metav1.ObjectMeta{Labels: map[string]string{"team": "one"}})
			if changed || !failure.Is(err, test.want) {
				t.Errorf("want %s, got %t, %v", test.want, changed, err)
			}
		})
	}
}
