package validation_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

// TestUpgradeKeepsTheRest upgrades only the maximum size of the first pool. All other fields must keep their values.
func TestUpgradeKeepsTheRest(t *testing.T) {
	t.Parallel()

	cases := map[string]func(cluster spec.ClusterConfig, objects *shoot.Objects) any{
		"ControlPlaneFailureTolerance": func(_ spec.ClusterConfig, o *shoot.Objects) any { return o.Shoot.Spec.ControlPlane },
		"DNSConfig":                    func(_ spec.ClusterConfig, o *shoot.Objects) any { return o.Shoot.Spec.DNS },
		"EUAccess":                     func(_ spec.ClusterConfig, o *shoot.Objects) any { return o.Shoot.Spec.AccessRestrictions },
		"IdentityProvider":             func(_ spec.ClusterConfig, o *shoot.Objects) any { return o.Authentication },
		"NetworkingFilter":             func(_ spec.ClusterConfig, o *shoot.Objects) any { return o.Shoot.Spec.Extensions },
		"Pools":                        func(_ spec.ClusterConfig, o *shoot.Objects) any { return o.Shoot.Spec.Provider.Workers[1:] },
		"Administrators":               func(cluster spec.ClusterConfig, _ *shoot.Objects) any { return cluster.Administrators },
	}

	before := present(azureCluster())
	before.GardenerConfig.ShootNetworkingFilterDisabled = new(false)
	before.GardenerConfig.AdditionalWorkers = []*spec.WorkerPool{gpuPool()}

	after, err := validation.UpgradeShoot(before, spec.Upgrade{GardenerConfig: &spec.ClusterUpgrade{AutoScalerMax: new(11)}})
	if err != nil {
		t.Fatal(err)
	}

	build := func(cluster spec.ClusterConfig) *shoot.Objects {
		objects, err := shoot.Build(shoot.Runtime{Config: cluster.GardenerConfig}, shoot.Options{Extensions: shoot.DefaultExtensions()})
		if err != nil {
			t.Fatal(err)
		}

		return objects
	}

	for name, part := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			want := part(before, build(before))
			if reflect.ValueOf(want).IsZero() {
				t.Fatalf("the cluster has no %s", name)
			}

			if diff := cmp.Diff(want, part(after, build(after))); diff != "" {
				t.Errorf("-before the upgrade +after:\n%s", diff)
			}
		})
	}
}
