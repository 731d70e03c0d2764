package deployments

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// graph is a client that returns BundleDeployments with the given dependencies.
type graph struct {
	client.Client

	dependencies map[string][]string
	reads        int
}

// Get implements client.Reader.
func (g *graph) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	g.reads++

	found, ok := object.(*v1alpha1.BundleDeployment)
	if ok {
		*found = *g.deployment(key.Name)
	}

	return nil
}

func (g *graph) deployment(name string) *v1alpha1.BundleDeployment {
	made := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, dependency := range g.dependencies[name] {
		made.Spec.DependsOn = append(made.Spec.DependsOn, v1alpha1.Dependency{Name: dependency})
	}

	return made
}

// TestCircle verifies that a cycle is found once, and that each BundleDeployment is read only a few times. If each of two BundleDeployments
// in 30 layers depends on both in the next layer, there are 2^30 paths.
func TestCircle(t *testing.T) {
	const layers = 30

	layered := map[string][]string{"first": {"0-a", "0-b"}}

	for i := range layers {
		next := []string{fmt.Sprintf("%d-a", i+1), fmt.Sprintf("%d-b", i+1)}
		layered[fmt.Sprintf("%d-a", i)], layered[fmt.Sprintf("%d-b", i)] = next, next
	}

	for name, row := range map[string]struct {
		reason       string
		dependencies map[string][]string
		want         int
	}{
		"none":      {"nothing depends on the first one", map[string][]string{"first": {"second"}}, 0},
		"itself":    {"a cycle may have one member", map[string][]string{"first": {"first"}}, 1},
		"two ways":  {"the cycle is on the second way", map[string][]string{"first": {"second", "third"}, "second": {"fourth"}, "third": {"fourth", "first"}}, 2},
		"elsewhere": {"a cycle without the first one is not its own", map[string][]string{"first": {"second"}, "second": {"third"}, "third": {"second"}}, 0},
		"layers":    {"the number of ways is exponential", layered, 0},
	} {
		t.Run(name, func(t *testing.T) {
			all := &graph{dependencies: row.dependencies}
			p := &pass{Reconciler: &Reconciler{Options: Options{Client: all}}}

			if got := p.circle(t.Context(), all.deployment("first"), nil, map[string]bool{}); len(got) != row.want {
				t.Errorf("%s: the cycle is %v", row.reason, got)
			}

			if most := 4*layers + 4; all.reads > most {
				t.Errorf("%s: %d reads", row.reason, all.reads)
			}
		})
	}
}
