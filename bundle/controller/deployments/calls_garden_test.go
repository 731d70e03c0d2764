//go:build garden

package deployments_test

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// TestPivotCalls counts the calls for the objects of a pivot: the objects are listed, each one has a dry run, and those that differ are
// written. While the new Bundle is being unpacked, the previous one is not compared.
func TestPivotCalls(t *testing.T) {
	f := newFixture(t)

	const objects, changed = 12, 5

	manifests := func(value string) string {
		var text strings.Builder

		for i := range objects {
			if i < changed {
				text.WriteString(f.configMap(strconv.Itoa(i), value))
			} else {
				text.WriteString(f.configMap(strconv.Itoa(i), "same"))
			}
		}

		return text.String()
	}

	calls := func() (found map[string]int) {
		f.mu.Lock()
		defer f.mu.Unlock()

		found = map[string]int{}

		for _, call := range f.calls {
			if !strings.Contains(call, "/configmaps") {
				continue
			}

			kind, _, _ := strings.Cut(call, " ")
			if strings.HasSuffix(call, "/configmaps") {
				kind += " list"
			}

			found[kind]++
		}

		f.calls = nil

		return found
	}

	f.create(f.content("1", manifests("1")))
	f.settle()
	calls()

	f.upgrade(f.content("2", manifests("2")))

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	// Nothing is watched in this test, so the health is read.
	if found := calls(); found["GET list"] != 1 || len(found) != 1 {
		t.Errorf("while the Bundle is not unpacked: %v", found)
	}

	f.unpack()

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	f.wantInstalled()

	// The objects are listed once for the comparison, and once to find objects that the inventory omits. These calls also return their
	// health.
	if found := calls(); found["GET list"] != 2 || found["PATCH"] != objects+changed || len(found) != 2 {
		t.Errorf("during the pivot: %v", found)
	}

	// An object that another owner has taken over is a collision, even if the inventory lists it.
	taken := &corev1.ConfigMap{}
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: f.name + "-3"}, taken); err != nil {
		t.Fatal(err)
	}

	taken.Labels[v1alpha1.LabelOwnerName] = "somebody-else"
	if err := f.Update(t.Context(), taken); err != nil {
		t.Fatal(err)
	}

	f.upgrade(f.content("3", manifests("3")))
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonUpgradeFailed, "BundleDeployment somebody-else")

	if value := f.value(f, "3"); value != "2" {
		t.Errorf("the object of somebody else has the value %q", value)
	}
}
