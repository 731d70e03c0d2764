package deployments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// dependencies describes why the installation must wait: for a cycle of dependencies to be removed, or for the first dependency
// that is not installed and healthy. It returns "" if the installation need not wait.
func (p *pass) dependencies(ctx context.Context) string {
	if circle := p.circle(ctx, p.deployment, nil, map[string]bool{}); circle != nil {
		return "BundleDeployments depend on each other in a cycle: " + strings.Join(circle, ", ")
	}

	for _, dependency := range p.deployment.Spec.DependsOn {
		found := &v1alpha1.BundleDeployment{}
		if err := p.Client.Get(ctx, client.ObjectKey{Name: dependency.Name}, found); err != nil {
			if client.IgnoreNotFound(err) == nil {
				return fmt.Sprintf("BundleDeployment %s does not exist", dependency.Name)
			}

			return fmt.Sprintf("BundleDeployment %s cannot be read", dependency.Name)
		}

		if !found.DeletionTimestamp.IsZero() || !isInstalled(found) || !isTrue(found, v1alpha1.TypeHealthy) {
			return fmt.Sprintf("waiting until BundleDeployment %s is installed and healthy", dependency.Name)
		}
	}

	return ""
}

// circle returns the names of BundleDeployments that depend on each other in a cycle, or nil. The cycle contains the
// BundleDeployment where the search started. before contains the names on the path from the start to the given BundleDeployment.
// seen contains the names that were already visited. Each BundleDeployment is visited only once, because the number of paths can
// grow exponentially.
func (p *pass) circle(ctx context.Context, deployment *v1alpha1.BundleDeployment, before []string, seen map[string]bool) []string {
	if len(before) > 0 && deployment.Name == before[0] {
		return before
	}

	if seen[deployment.Name] {
		return nil
	}

	seen[deployment.Name] = true
	before = append(slices.Clone(before), deployment.Name)

	for _, dependency := range deployment.Spec.DependsOn {
		next := &v1alpha1.BundleDeployment{}
		if p.Client.Get(ctx, client.ObjectKey{Name: dependency.Name}, next) != nil {
			continue
		}

		if found := p.circle(ctx, next, before, seen); found != nil {
			return found
		}
	}

	return nil
}
