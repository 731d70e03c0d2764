package deployments

import (
	"maps"
	"slices"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

const kindSecret = "Secret"

// need is an object on the hub whose changes affect a BundleDeployment: a BundleDeployment that it depends on, or the Secret with its
// kubeconfig.
type need struct{ kind, name string }

func needsOf(deployment *v1alpha1.BundleDeployment) (needs []need) {
	for _, dependency := range deployment.Spec.DependsOn {
		needs = append(needs, need{v1alpha1.KindBundleDeployment, dependency.Name})
	}

	if target := deployment.Spec.Target; target != nil {
		needs = append(needs, need{kindSecret, target.KubeconfigSecretRef.Name})
	}

	return needs
}

// recordNeeds records the objects that a BundleDeployment needs. It must be called before these objects are read, so that later
// changes cause another reconciliation. The caller must hold the lock.
func (r *Reconciler) recordNeeds(deployment *v1alpha1.BundleDeployment, known *memory) {
	needs := needsOf(deployment)
	if slices.Equal(needs, known.needs) {
		return
	}

	r.forgetNeeds(deployment.Name)
	known.needs = needs

	for _, each := range needs {
		if r.needing[each] == nil {
			r.needing[each] = map[string]bool{}
		}

		r.needing[each][deployment.Name] = true
	}
}

// forgetNeeds drops the recorded needs of a BundleDeployment. The caller must hold the lock.
func (r *Reconciler) forgetNeeds(name string) {
	known := r.memory[name]
	if known == nil {
		return
	}

	for _, each := range known.needs {
		delete(r.needing[each], name)

		if len(r.needing[each]) == 0 {
			delete(r.needing, each)
		}
	}

	known.needs = nil
}

// neededBy returns the names of the BundleDeployments that need an object.
func (r *Reconciler) neededBy(object need) []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Sorted(maps.Keys(r.needing[object]))
}
