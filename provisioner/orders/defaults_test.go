package orders_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestDefaults orders clusters without some values. The stored order contains the defaults.
func TestDefaults(t *testing.T) {
	zones := func(names ...string) *spec.Provider { return &spec.Provider{GCPConfig: &spec.GCP{Zones: names}} }

	cases := map[string]struct {
		reason        string
		ordered, want spec.Cluster
	}{
		"nothing": {
			"all values have defaults",
			spec.Cluster{Provider: "gcp"},
			spec.Cluster{Provider: "gcp", KubernetesVersion: "1.35", MachineType: "small", AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1},
		},
		"everything": {
			"ordered values stay",
			spec.Cluster{Provider: "gcp", KubernetesVersion: "1.34.5", MachineType: "large", AutoScalerMax: 2, MaxUnavailable: 1},
			spec.Cluster{Provider: "gcp", KubernetesVersion: "1.34.5", MachineType: "large", AutoScalerMax: 2, MaxUnavailable: 1},
		},
		"minimum": {
			"the maximum is not below the minimum",
			spec.Cluster{Provider: "gcp", AutoScalerMin: 7},
			spec.Cluster{Provider: "gcp", KubernetesVersion: "1.35", MachineType: "small", AutoScalerMin: 7, AutoScalerMax: 7, MaxSurge: 1},
		},
		"zones": {
			"each zone has a machine",
			spec.Cluster{Provider: "gcp", ProviderSpecificConfig: zones("a", "b", "c", "d")},
			spec.Cluster{
				Provider: "gcp", KubernetesVersion: "1.35", MachineType: "small", AutoScalerMin: 1, AutoScalerMax: 4, MaxSurge: 1,
				ProviderSpecificConfig: zones("a", "b", "c", "d"),
			},
		},
		"null zone": {
			"the order is completed before it is validated",
			spec.Cluster{Provider: "gcp", ProviderSpecificConfig: &spec.Provider{AWSConfig: &spec.AWS{AWSZones: []*spec.AWSZone{nil}}}},
			spec.Cluster{
				Provider: "gcp", KubernetesVersion: "1.35", MachineType: "small", AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1,
				ProviderSpecificConfig: &spec.Provider{AWSConfig: &spec.AWS{AWSZones: []*spec.AWSZone{nil}}},
			},
		},
		"other provider": {
			"the type of a machine depends on the provider",
			spec.Cluster{Provider: "aws", AutoScalerMax: 1, MaxSurge: 1},
			spec.Cluster{Provider: "aws", KubernetesVersion: "1.35", AutoScalerMax: 1, MaxSurge: 1},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			f.service.Defaults = &orders.Defaults{KubernetesVersion: "1.35", MachineTypes: map[string]string{"gcp": "small"}}

			var validated spec.Runtime

			f.service.Validate = func(order spec.Runtime) error {
				validated = order

				return nil
			}

			c.ordered.Name, c.want.Name = "c-first", "c-first"
			sent := c.ordered

			status, err := f.service.Provision(t.Context(), caller("tenant", ""), spec.Runtime{
				Metadata: &spec.Metadata{Name: "mine"}, ClusterConfig: &spec.ClusterConfig{GardenerConfig: &c.ordered},
			})
			if err != nil {
				t.Fatal(err)
			}

			stored, err := f.service.RuntimeStatus(t.Context(), caller("tenant", ""), status.RuntimeID, orders.RuntimeFields{})
			if diff := cmp.Diff(&c.want, stored.Cluster); diff != "" || err != nil {
				t.Errorf("%s: %v, stored -want +got\n%s", c.reason, err, diff)
			}

			if diff := cmp.Diff(c.want, *validated.ClusterConfig.GardenerConfig); diff != "" {
				t.Errorf("%s: validated -want +got\n%s", c.reason, diff)
			}

			if diff := cmp.Diff(sent, c.ordered); diff != "" {
				t.Errorf("%s: the order of the client was changed: -want +got\n%s", c.reason, diff)
			}
		})
	}
}
