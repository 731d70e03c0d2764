package localgarden

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

const (
	// prepareTimeout is how long the admission plugins may take to see the seed objects.
	prepareTimeout = 2 * time.Minute

	// member is the user name in the services' kubeconfig. This user is a member of all projects and has no other rights in the
	// garden.
	member = "garden"
)

//go:embed rights.yaml
var rights string

//go:embed sample_shoot.yaml
var sampleShoot []byte

// prepareProjects creates the seed objects and the member's rights, and waits until the garden accepts a Shoot in each project.
// Gardener's admission plugins read objects from caches, so they reject Shoots until the caches contain the new objects.
func prepareProjects(ctx context.Context, admin client.Client, projects []string) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	if err := process.Until(ctx, "the seed is applied", func(ctx context.Context) error {
		return fakegarden.Seed(ctx, admin, projects...)
	}); err != nil {
		return err
	}
	shoot := &gardencorev1beta1.Shoot{}
	if err := yaml.UnmarshalStrict(sampleShoot, shoot); err != nil {
		return fmt.Errorf("decoding the sample Shoot: %w", err)
	}
	for _, project := range projects {
		shoot.Namespace = gardenlet.Namespace(project)
		if err := fakegarden.Apply(ctx, admin, rights, map[string]any{"Namespace": shoot.Namespace, "Member": member}); err != nil {
			return fmt.Errorf("granting the rights of a project member: %w", err)
		}
		if err := process.Until(ctx, "a Shoot is accepted", func(ctx context.Context) error {
			return admin.Create(ctx, shoot.DeepCopy(), client.DryRunAll)
		}); err != nil {
			return err
		}
	}
	return nil
}
