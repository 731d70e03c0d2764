package shoot_test

import (
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

func TestKeep(t *testing.T) {
	t.Parallel()

	type versions struct{ Kubernetes, Image string }

	cases := map[string]struct {
		reason                 string
		ordered, present, want versions
	}{
		"Newer": {
			reason:  "A newer version is what an upgrade is for.",
			ordered: versions{"1.35.4", "2.0.0"}, present: versions{"1.34.7", "1.0.0"}, want: versions{"1.35.4", "2.0.0"},
		},
		"RaisedByGardener": {
			reason:  "Gardener takes no older version than the one that it has raised the cluster to.",
			ordered: versions{"1.34.5", "1.0.0"}, present: versions{"1.34.7", "1.2.0"}, want: versions{"1.34.7", "1.2.0"},
		},
		"OpenPatch": {
			reason:  "An order that leaves the patch open means the one that Gardener chose, and no upgrade by the way.",
			ordered: versions{"1.34", "1.0.0"}, present: versions{"1.34.5", "1.0.0"}, want: versions{"1.34.5", "1.0.0"},
		},
		"OpenPatchOfTheNext": {
			reason:  "The next minor version with any patch is one.",
			ordered: versions{"1.35", "1.0.0"}, present: versions{"1.34.5", "1.0.0"}, want: versions{"1.35", "1.0.0"},
		},
		"OtherNumbering": {
			reason:  "Of images whose versions cannot be compared the ordered one counts.",
			ordered: versions{"1.34.5", "latest"}, present: versions{"1.34.5", "2.0.0"}, want: versions{"1.34.5", "latest"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			build := func(v versions) *shoot.Objects {
				config := awsOrder()
				config.KubernetesVersion, config.MachineImageVersion = v.Kubernetes, &v.Image

				built, err := shoot.Build(runtimeOf(config), shoot.Options{})
				if err != nil {
					t.Fatal(err)
				}

				return built
			}

			objects := build(tc.ordered)
			objects.Keep(build(tc.present).Shoot)

			spec := objects.Shoot.Spec
			got := versions{spec.Kubernetes.Version, *spec.Provider.Workers[0].Machine.Image.Version}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKeepLetsAClusterSleep(t *testing.T) {
	t.Parallel()

	objects, err := shoot.Build(runtimeOf(gcpOrder()), shoot.Options{})
	if err != nil {
		t.Fatal(err)
	}

	asleep := &gardencorev1beta1.Shoot{}
	asleep.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
	objects.Keep(asleep)

	if diff := cmp.Diff(asleep.Spec.Hibernation, objects.Shoot.Spec.Hibernation); diff != "" {
		t.Errorf("a change of a cluster that sleeps does not wake it, -want +got:\n%s", diff)
	}
}
