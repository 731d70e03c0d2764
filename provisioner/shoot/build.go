package shoot

import (
	"cmp"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const networkType = "calico"

// Objects are what Gardener makes a cluster of.
type Objects struct {
	Shoot *gardencorev1beta1.Shoot
	// Authentication is the ConfigMap that the Shoot refers to and that has to be there before it, or nil.
	Authentication *corev1.ConfigMap
}

// Build returns the objects for the runtime, or failure.Invalid when its order has no part for its provider. What is left out stays
// unset, so that Gardener decides. Send them to Gardener as their Manifests.
func Build(runtime Runtime, options Options) (*Objects, error) {
	config := runtime.Config

	cloud, err := cloudOf(config, options)
	if err != nil {
		return nil, err
	}

	provider, err := providerOf(config, cloud)
	if err != nil {
		return nil, fmt.Errorf("describe provider %s: %w", config.Provider, err)
	}

	extensions, err := extensionsOf(config, options)
	if err != nil {
		return nil, fmt.Errorf("describe extensions: %w", err)
	}

	authentication, err := authenticationOf(runtime, options)
	if err != nil {
		return nil, err
	}

	return &Objects{Authentication: authentication, Shoot: &gardencorev1beta1.Shoot{
		TypeMeta:   metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"},
		ObjectMeta: metadata(runtime, options),
		Spec: gardencorev1beta1.ShootSpec{
			CredentialsBindingName: &config.TargetSecret,
			CloudProfile: &gardencorev1beta1.CloudProfileReference{
				Kind: constants.CloudProfileReferenceKindCloudProfile, Name: cloud.profile,
			},
			SeedName:           given(config.Seed),
			Region:             config.Region,
			Purpose:            (*gardencorev1beta1.ShootPurpose)(given(config.Purpose)),
			ExposureClassName:  given(new(cmp.Or(valueOr(config.ExposureClassName, ""), cloud.exposureClass))),
			Kubernetes:         kubernetesOf(config, options, authentication),
			Networking:         networkingOf(config, cloud),
			Maintenance:        maintenanceOf(config, options),
			Provider:           *provider,
			Extensions:         extensions,
			Resources:          options.AuditLogs.of(config).resources(),
			ControlPlane:       controlPlaneOf(config),
			Tolerations:        tolerationsOf(config),
			AccessRestrictions: accessRestrictionsOf(config),
			DNS:                dnsOf(config.DNSConfig),
		},
	}}, nil
}

func kubernetesOf(config *spec.Cluster, options Options, authentication *corev1.ConfigMap) gardencorev1beta1.Kubernetes {
	kubernetes := gardencorev1beta1.Kubernetes{Version: config.KubernetesVersion}
	if options.AuditPolicyConfigMap == "" && authentication == nil {
		return kubernetes
	}

	kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{}

	if options.AuditPolicyConfigMap != "" {
		kubernetes.KubeAPIServer.AuditConfig = &gardencorev1beta1.AuditConfig{AuditPolicy: &gardencorev1beta1.AuditPolicy{
			ConfigMapRef: &corev1.ObjectReference{Name: options.AuditPolicyConfigMap},
		}}
	}

	if authentication != nil {
		kubernetes.KubeAPIServer.StructuredAuthentication = &gardencorev1beta1.StructuredAuthentication{ConfigMapName: authentication.Name}
	}

	return kubernetes
}

func networkingOf(config *spec.Cluster, cloud *cloud) *gardencorev1beta1.Networking {
	return &gardencorev1beta1.Networking{
		Type: new(networkType), Nodes: &cloud.nodes, Pods: given(config.PodsCIDR), Services: given(config.ServicesCIDR),
	}
}

func maintenanceOf(config *spec.Cluster, options Options) *gardencorev1beta1.Maintenance {
	maintenance := &gardencorev1beta1.Maintenance{AutoUpdate: &gardencorev1beta1.MaintenanceAutoUpdate{
		KubernetesVersion:   valueOr(config.EnableKubernetesVersionAutoUpdate, options.AutoUpdateKubernetes),
		MachineImageVersion: new(valueOr(config.EnableMachineImageVersionAutoUpdate, options.AutoUpdateMachineImage)),
	}}

	window, ok := options.MaintenanceWindows[config.Region]
	if ok && valueOr(config.Purpose, "") == string(gardencorev1beta1.ShootPurposeProduction) {
		maintenance.TimeWindow = &window
	}

	return maintenance
}

func controlPlaneOf(config *spec.Cluster) *gardencorev1beta1.ControlPlane {
	tolerance := given(config.ControlPlaneFailureTolerance)
	if tolerance == nil {
		return nil
	}

	return &gardencorev1beta1.ControlPlane{HighAvailability: &gardencorev1beta1.HighAvailability{
		FailureTolerance: gardencorev1beta1.FailureTolerance{Type: gardencorev1beta1.FailureToleranceType(*tolerance)},
	}}
}

// given returns nil for a text that is left out or empty, which means the same.
func given(text *string) *string {
	if text == nil || *text == "" {
		return nil
	}

	return text
}

func valueOr[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}

	return *value
}
