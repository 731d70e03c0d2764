//go:build garden

package requirements_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// TestRequirement02OwnClass runs provisioners of two classes side by side. Each must write only to its own Bundles.
func TestRequirement02OwnClass(t *testing.T) {
	a := start(t, newDisk(), classes()[plain])
	b := start(t, newDisk(), classes()[second])
	for _, name := range []string{"r2-a", "r2-b"} {
		a.sources.set(name, has(manifest()))
		b.sources.set(name, has(manifest()))
	}
	a.image("r2-a")
	b.image("r2-b")
	nobody := *a
	nobody.class = "nobody"
	nobody.image("r2-nobody")

	a.reaches("r2-a", v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
	b.reaches("r2-b", v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
	if a.sources.fetches("r2-b")+b.sources.fetches("r2-a") > 0 {
		t.Error("a provisioner has fetched a Bundle of another class")
	}
	untouched := &v1alpha1.Bundle{}
	if err := a.Get(t.Context(), client.ObjectKey{Name: "r2-nobody"}, untouched); err != nil {
		t.Fatal(err)
	}
	if untouched.Status.Phase != "" || len(untouched.Finalizers) > 0 || a.sources.fetches("r2-nobody")+b.sources.fetches("r2-nobody") > 0 {
		t.Errorf("a Bundle of an unknown class was touched: %+v", untouched)
	}
}
