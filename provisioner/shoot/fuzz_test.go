package shoot_test

import (
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// FuzzOrderOf checks that any configuration of a provider is either rejected or results in an order from which a Shoot can be built, and
// that this Shoot keeps the configuration.
func FuzzOrderOf(f *testing.F) {
	f.Add("aws", `{"networks":{"vpc":{"cidr":"10.250.0.0/16"},"zones":[{"name":"a","workers":"10.250.0.0/19"}]}}`, `{}`, "1")
	f.Add("azure", `{"networks":{"vnet":{"cidr":"10.250.0.0/16"},"zones":[{"name":1,"cidr":"10.250.0.0/19","natGateway":{"enabled":true}}]}}`, `null`, "1")
	f.Add("gcp", `{"networks":{"workers":"10.250.0.0/16"}}`, `{"zone":"a"}`, "a")
	f.Add("openstack", `{"floatingPoolName":"x","networks":{"workers":"10.250.0.0/16"}}`, `{"loadBalancerProvider":"f5"}`, "")
	f.Add("ibm", `[]`, `1`, "a")
	f.Fuzz(func(t *testing.T, provider, infrastructure, plane, zone string) {
		present := &gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{Provider: gardencorev1beta1.Provider{
			Type: provider, InfrastructureConfig: &runtime.RawExtension{Raw: []byte(infrastructure)}, ControlPlaneConfig: &runtime.RawExtension{Raw: []byte(plane)},
			Workers: []gardencorev1beta1.Worker{{Name: "a", Zones: []string{zone}}},
		}}}

		order, err := shoot.OrderOf(present, "binding")
		if err != nil {
			return
		}

		built, err := shoot.Build(shoot.Runtime{ID: "id", Config: order}, shoot.Options{})
		if err != nil {
			t.Fatal(err)
		}

		changes, err := built.FirstChange(present)
		if err != nil {
			t.Fatal(err)
		}

		for _, change := range changes {
			if strings.HasPrefix(change.Path, "spec.provider.infrastructureConfig") || strings.HasPrefix(change.Path, "spec.provider.controlPlaneConfig") {
				t.Errorf("got %s", change)
			}
		}
	})
}
