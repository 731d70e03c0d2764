//go:build garden

package deployments_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

var errAway = errors.New("the hub is unreachable")

// TestRequirement05Unevaluated makes a call to the hub fail in the first reconciliation after a change of the spec. The conditions of
// the previous generation might no longer hold, so none of them may claim success for the new one. Installed may stay true with
// another reason than InstallationSucceeded.
func TestRequirement05Unevaluated(t *testing.T) {
	for call, broken := range map[string]interceptor.Funcs{
		"listing the Bundles": {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return errAway }},
		"creating a Bundle":   {Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return errAway }},
		"deleting a Bundle":   {Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return errAway }},
	} {
		t.Run(call, func(t *testing.T) {
			f := newFixture(t)
			f.create(f.content("1", f.configMap("one", "1")))
			f.settle()

			// More Bundles than the controller keeps, so that it deletes one.
			for i := range 4 {
				f.upgrade(f.content("bad-"+strconv.Itoa(i), ""))
				f.settle()
			}

			f.want(v1alpha1.TypeHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "")

			working, direct := f.options.Client, f.watching()
			f.options.Client = interceptor.NewClient(direct, broken)
			f.restart()
			f.upgrade(f.content("2", f.configMap("one", "2")))

			if _, err := f.pass(); !errors.Is(err, errAway) {
				t.Fatalf("the pass is not interrupted: %v", err)
			}

			for _, condition := range f.deployment().Status.Conditions {
				former := condition.Status == metav1.ConditionTrue &&
					(condition.Type != v1alpha1.TypeInstalled || condition.Reason == v1alpha1.ReasonInstallationSucceeded)
				if former || condition.ObservedGeneration != f.deployment().Generation {
					t.Errorf("nothing is known of the new generation: %+v", condition)
				}
			}

			f.options.Client = working
			f.restart()
			f.settle()
			f.wantInstalled()
		})
	}
}
