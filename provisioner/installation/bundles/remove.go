package bundles

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// Uninstall implements installation.Installer. It deletes the BundleDeployments in reverse order, and then the kubeconfig.
func (i *Installer) Uninstall(ctx context.Context, target installation.Target) (installation.Progress, error) {
	direct, err := i.Direct.Installed(ctx, target)
	if err != nil {
		return installation.Progress{}, err
	}

	if direct {
		return i.Direct.Uninstall(ctx, target)
	}

	found, err := i.find(ctx, target.RuntimeID)
	if err != nil {
		return installation.Progress{}, err
	}

	if len(found.deployments) > 0 {
		if _, err := i.provideKubeconfig(ctx, target); err != nil {
			return installation.Progress{}, err
		}

		waiting, err := i.remove(ctx, slices.Collect(maps.Values(found.deployments)), func(spec *v1alpha1.BundleDeploymentSpec) {
			spec.DeletionPolicy = v1alpha1.DeletionPolicyUninstall
		})
		if err != nil || waiting != "" {
			return installation.Progress{Message: waiting}, err
		}
	}

	return i.finish(ctx, target.RuntimeID)
}

// Forget removes all objects of a runtime from the hub. It does not change the cluster, which no longer exists.
func (i *Installer) Forget(ctx context.Context, runtimeID string) (installation.Progress, error) {
	found, err := i.find(ctx, runtimeID)
	if err != nil {
		return installation.Progress{}, err
	}

	var waiting string

	for _, deployment := range found.deployments {
		// A suspended BundleDeployment leaves its objects behind, so its deletion does not wait for the cluster.
		text, err := i.removeOne(ctx, deployment, func(spec *v1alpha1.BundleDeploymentSpec) { spec.Suspend = true })
		if err != nil {
			return installation.Progress{}, err
		}

		waiting = cmp.Or(waiting, text)
	}

	if waiting != "" {
		return installation.Progress{Message: waiting}, nil
	}

	return i.finish(ctx, runtimeID)
}

// finish deletes the Secret with the kubeconfig. Bundles are deleted with their BundleDeployments.
func (i *Installer) finish(ctx context.Context, runtimeID string) (installation.Progress, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: secretName(runtimeID)}}
	if err := i.Hub().Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return installation.Progress{}, explain(err, "the kubeconfig of the runtime")
	}

	return installation.Progress{Done: true, Message: "nothing is installed"}, nil
}

// prune deletes the BundleDeployments of components that the plan omits. A CustomResourceDefinition stays as long as other
// components have objects of its kind.
func (i *Installer) prune(ctx context.Context, runtimeID string, plan installation.Plan, parts []part, found *objects) (installation.Progress, error) {
	wanted := map[string]bool{}
	for _, part := range parts {
		wanted[deploymentName(runtimeID, part.name)] = true
	}

	var unwanted []*v1alpha1.BundleDeployment

	for name, deployment := range found.deployments {
		if !wanted[name] {
			unwanted = append(unwanted, deployment)
		}
	}

	waiting, err := i.remove(ctx, unwanted, func(spec *v1alpha1.BundleDeploymentSpec) { spec.DeletionPolicy = v1alpha1.DeletionPolicyKeepUsed })
	if err != nil || waiting != "" {
		return installation.Progress{Message: waiting}, err
	}

	return installation.Progress{Done: true, Message: plan.Installed()}, nil
}

// remove deletes BundleDeployments, each after those that depend on it. waiting describes the first one that still exists.
func (i *Installer) remove(ctx context.Context, deployments []*v1alpha1.BundleDeployment,
	change func(*v1alpha1.BundleDeploymentSpec),
) (waiting string, err error) {
	slices.SortFunc(deployments, func(a, b *v1alpha1.BundleDeployment) int { return cmp.Compare(a.Name, b.Name) })

	for _, deployment := range deployments {
		needed := slices.ContainsFunc(deployments, func(other *v1alpha1.BundleDeployment) bool {
			return slices.Contains(other.Spec.DependsOn, v1alpha1.Dependency{Name: deployment.Name})
		})
		if needed {
			continue
		}

		text, err := i.removeOne(ctx, deployment, change)
		if err != nil {
			return "", err
		}

		waiting = cmp.Or(waiting, text)
	}

	if waiting == "" && len(deployments) > 0 {
		return "", failure.New(failure.Permanent, "the BundleDeployments of the runtime depend on each other in a cycle: an operator must "+
			"change spec.dependsOn").
			WithReason(failure.ReasonConfiguration, failure.ComponentBundles)
	}

	return waiting, nil
}

// removeOne changes the spec of a BundleDeployment and deletes it. waiting describes the progress of the deletion. If there is no
// error, waiting is never empty, not even in the first call; remove relies on this.
func (i *Installer) removeOne(ctx context.Context, deployment *v1alpha1.BundleDeployment,
	change func(*v1alpha1.BundleDeploymentSpec),
) (waiting string, err error) {
	where := "component " + deployment.Labels[LabelComponent]
	if deployment.Labels[LabelComponent] == "" {
		where = "the namespaces of the components"
	}

	changed := deployment.DeepCopy()
	change(&changed.Spec)

	if !sameSpec(deployment, changed) {
		if err := i.Hub().Update(ctx, changed); client.IgnoreNotFound(err) != nil {
			return "", explain(err, where)
		}
	}

	if deployment.DeletionTimestamp.IsZero() {
		if err := i.Hub().Delete(ctx, changed, client.Preconditions{UID: &changed.UID}); client.IgnoreNotFound(err) != nil {
			return "", explain(err, where)
		}
	}

	return "removing " + where + ": " + cmp.Or(condition(deployment, v1alpha1.TypeInstalled).Message, "waiting for the bundle provisioner"), nil
}
