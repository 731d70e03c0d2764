package kymarows

import (
	"encoding/json"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Manager is the field manager with which Kyma Provisioner applied Shoots.
const Manager = "provisioner"

// Annotations that Kyma Provisioner set on its Shoots.
const (
	annotationRuntime   = "kcp.provisioner.kyma-project.io/runtime-id"
	annotationOperation = "kcp.provisioner.kyma-project.io/operation-id"
)

// CustomAnnotation is an annotation that a user added to the Shoot. Kyma Provisioner reapplied it with each change.
const CustomAnnotation = "example.com/cost-center"

// Shoot returns the Shoot as Kyma Provisioner applied it: with a SecretBinding and a cloud profile name, and with all fields that
// other programs had set. Kyma Provisioner applied these fields too, because it read the Shoot and applied it as a whole.
//
//nolint:staticcheck // Kyma Provisioner sets fields that are deprecated now.
func (c Cluster) Shoot(namespace string) (*gardencorev1beta1.Shoot, error) {
	infrastructure, controlPlane, err := c.configs()
	if err != nil {
		return nil, err
	}

	worker := gardencorev1beta1.Worker{
		Name: "cpu-worker-0", Minimum: c.Minimum, Maximum: c.Maximum, MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)),
		Machine: gardencorev1beta1.Machine{Type: c.MachineType}, Zones: c.Zones, Labels: map[string]string{"team": "payments"},
		Annotations: map[string]string{"example.com/note": "kept"},
	}
	if c.diskType() != "" {
		worker.Volume = &gardencorev1beta1.Volume{Type: new(c.diskType()), VolumeSize: "50Gi"}
	}

	shoot := &gardencorev1beta1.Shoot{
		TypeMeta: metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"},
		ObjectMeta: metav1.ObjectMeta{
			Name: c.Name, Namespace: namespace, Labels: map[string]string{"account": c.Tenant, "subaccount": c.SubAccount},
			Annotations: map[string]string{
				annotationRuntime: c.ID, annotationOperation: c.CreationID, "compass." + annotationRuntime[len("kcp."):]: c.ID,
				"compass." + annotationOperation[len("kcp."):]: c.CreationID, CustomAnnotation: "4711",
			},
		},
		Spec: gardencorev1beta1.ShootSpec{
			SecretBindingName: new(c.Binding), CloudProfileName: new(c.profile()), Region: c.Region,
			Purpose: new(gardencorev1beta1.ShootPurpose(c.Purpose)),
			Kubernetes: gardencorev1beta1.Kubernetes{
				Version:               "1.33.11",
				VerticalPodAutoscaler: &gardencorev1beta1.VerticalPodAutoscaler{Enabled: true, EvictAfterOOMThreshold: &metav1.Duration{Duration: 7 * 60e9}},
			},
			Networking:  &gardencorev1beta1.Networking{Type: new("calico"), Nodes: new(c.Nodes), Pods: new("100.64.0.0/12"), Services: new("100.104.0.0/13")},
			Maintenance: &gardencorev1beta1.Maintenance{AutoUpdate: &gardencorev1beta1.MaintenanceAutoUpdate{MachineImageVersion: new(false)}},
			Provider: gardencorev1beta1.Provider{
				Type: c.Provider, InfrastructureConfig: infrastructure, ControlPlaneConfig: controlPlane, Workers: []gardencorev1beta1.Worker{worker},
			},
			Extensions: []gardencorev1beta1.Extension{
				{Type: "shoot-dns-service", ProviderConfig: raw(`{"apiVersion":"service.dns.extensions.gardener.cloud/v1alpha1","kind":"DNSConfig","dnsProviderReplication":{"enabled":true}}`)},
				{Type: "shoot-cert-service", ProviderConfig: raw(`{"apiVersion":"service.cert.extensions.gardener.cloud/v1alpha1","kind":"CertConfig","shootIssuers":{"enabled":true}}`)},
				{Type: "shoot-networking-filter", Disabled: new(true)},
			},
		},
	}

	if c.EUAccess {
		shoot.Annotations["support.gardener.cloud/eu-access-for-cluster-nodes"] = "true"
	}

	if c.DNSSecret != "" {
		shoot.Spec.DNS = &gardencorev1beta1.DNS{Domain: new(c.Domain()), Providers: []gardencorev1beta1.DNSProvider{{
			Type: new("aws-route53"), Primary: new(true), Domains: &gardencorev1beta1.DNSIncludeExclude{Include: []string{c.Domain()}},
			SecretName: new(c.DNSSecret),
		}}}
	}

	return shoot, nil
}

func (c Cluster) profile() string {
	return map[string]string{"aws": "aws", "azure": "az", "gcp": "gcp", "openstack": "converged-cloud-cp"}[c.Provider]
}

// configs returns the provider-specific configurations in the form in which Kyma Provisioner built them.
func (c Cluster) configs() (infrastructure, controlPlane *runtime.RawExtension, err error) {
	kind := func(kind string) map[string]any {
		return map[string]any{"apiVersion": c.Provider + ".provider.extensions.gardener.cloud/v1alpha1", "kind": kind}
	}
	plane, infra := kind("ControlPlaneConfig"), kind("InfrastructureConfig")

	switch c.Provider {
	case "aws":
		var zones []any

		for _, each := range c.ProviderConfig["awsZones"].([]any) { //nolint:forcetypeassert // Example sets it.
			zone := each.(map[string]any) //nolint:forcetypeassert // Example sets it.
			zones = append(zones, map[string]any{"name": zone["name"], "workers": zone["workerCidr"], "public": zone["publicCidr"], "internal": zone["internalCidr"]})
		}

		infra["networks"] = map[string]any{"vpc": map[string]any{"cidr": c.ProviderConfig["vpcCidr"]}, "zones": zones}
	case "azure":
		infra["networks"] = map[string]any{
			"vnet": map[string]any{"cidr": c.ProviderConfig["vnetCidr"]}, "workers": c.WorkerCIDR,
			"natGateway": map[string]any{"enabled": true, "idleConnectionTimeoutMinutes": 4},
		}
		infra["zoned"] = true
	case "gcp":
		infra["networks"] = map[string]any{"worker": c.WorkerCIDR, "workers": c.WorkerCIDR}
		plane["zone"] = c.Zones[0]
	case "openstack":
		infra["floatingPoolName"] = c.ProviderConfig["floatingPoolName"]
		infra["networks"] = map[string]any{"worker": "", "workers": c.WorkerCIDR}
		plane["loadBalancerProvider"] = c.ProviderConfig["loadBalancerProvider"]
	}

	infraText, err := json.Marshal(infra)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a configuration: %w", err)
	}

	planeText, err := json.Marshal(plane)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a configuration: %w", err)
	}

	return raw(string(infraText)), raw(string(planeText)), nil
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
