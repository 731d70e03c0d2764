package shoot

import (
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

const networkType = "calico"

// Build returns the Shoot for the runtime, or failure.Invalid when it needs something that is not supported yet. What is
// left out stays unset, so that Gardener decides. Send the Shoot to Gardener as its Manifest.
func Build(runtime Runtime, options Options) (*gardencorev1beta1.Shoot, error) {
	config := runtime.Config
	if err := refuse(config); err != nil {
		return nil, err
	}

	cloud, err := cloudOf(config, options)
	if err != nil {
		return nil, err
	}

	provider, err := providerOf(config, cloud)
	if err != nil {
		return nil, fmt.Errorf("describe provider %s: %w", config.Provider, err)
	}

	extensions, err := extensionsOf(config, options.Extensions)
	if err != nil {
		return nil, fmt.Errorf("describe extensions: %w", err)
	}

	return &gardencorev1beta1.Shoot{
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
			ExposureClassName:  given(config.ExposureClassName),
			Kubernetes:         kubernetesOf(config, options),
			Networking:         networkingOf(config, cloud),
			Maintenance:        maintenanceOf(config, options),
			Provider:           *provider,
			Extensions:         extensions,
			ControlPlane:       controlPlaneOf(config),
			Tolerations:        tolerationsOf(config),
			AccessRestrictions: accessRestrictionsOf(config),
		},
	}, nil
}

// refuse finds what an order may hold and this package cannot do yet.
func refuse(config *model.GardenerConfigInput) error {
	switch {
	case config.OIDCConfig != nil:
		return failure.New(failure.Invalid, "oidcConfig is not supported yet")
	case config.DNSConfig != nil:
		return failure.New(failure.Invalid, "dnsConfig is not supported yet")
	default:
		return nil
	}
}

func kubernetesOf(config *model.GardenerConfigInput, options Options) gardencorev1beta1.Kubernetes {
	kubernetes := gardencorev1beta1.Kubernetes{Version: config.KubernetesVersion}

	if options.AuditPolicyConfigMap != "" {
		kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{AuditConfig: &gardencorev1beta1.AuditConfig{
			AuditPolicy: &gardencorev1beta1.AuditPolicy{
				ConfigMapRef: &corev1.ObjectReference{Name: options.AuditPolicyConfigMap},
			},
		}}
	}

	return kubernetes
}

func networkingOf(config *model.GardenerConfigInput, cloud *cloud) *gardencorev1beta1.Networking {
	return &gardencorev1beta1.Networking{
		Type: new(networkType), Nodes: &cloud.nodes, Pods: given(config.PodsCIDR), Services: given(config.ServicesCIDR),
	}
}

func maintenanceOf(config *model.GardenerConfigInput, options Options) *gardencorev1beta1.Maintenance {
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

func controlPlaneOf(config *model.GardenerConfigInput) *gardencorev1beta1.ControlPlane {
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
