package shoot

import (
	"cmp"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// networkType is the network plugin of all Shoots.
const networkType = "calico"

// Objects are the objects in Gardener that make up a cluster.
type Objects struct {
	Shoot *gardencorev1beta1.Shoot
	// Authentication is a ConfigMap that the Shoot refers to, or nil. It must exist before the Shoot.
	Authentication *corev1.ConfigMap
}

// Build returns the objects of the runtime, or failure.Invalid if its order has no part for its provider. Fields that the order
// omits stay unset: Gardener decides. Apply the objects as their Manifests.
func Build(runtime Runtime, options Options) (*Objects, error) {
	config := runtime.Config

	cloud, err := cloudOf(config, options)
	if err != nil {
		return nil, err
	}

	provider, err := providerOf(config, cloud)
	if err != nil {
		return nil, fmt.Errorf("building provider %s: %w", config.Provider, err)
	}

	extensions, err := extensionsOf(config, options)
	if err != nil {
		return nil, fmt.Errorf("building extensions: %w", err)
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

// kubernetesOf returns the version and the configuration of the API server, which is omitted if it would be empty.
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
		kubernetes.KubeAPIServer.StructuredAuthentication = &gardencorev1beta1.StructuredAuthentication{
			ConfigMapName: authentication.Name,
		}
	}

	return kubernetes
}

// networkingOf returns the networks of the cluster. Gardener chooses the ranges of pods and services if the order omits them.
func networkingOf(config *spec.Cluster, cloud *cloud) *gardencorev1beta1.Networking {
	return &gardencorev1beta1.Networking{
		Type: new(networkType), Nodes: &cloud.nodes, Pods: given(config.PodsCIDR), Services: given(config.ServicesCIDR),
	}
}

// maintenanceOf returns the automatic updates and, for production in a configured region, the maintenance window.
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

// controlPlaneOf returns the failure tolerance of the control plane, or nil: then a single replica runs.
func controlPlaneOf(config *spec.Cluster) *gardencorev1beta1.ControlPlane {
	tolerance := given(config.ControlPlaneFailureTolerance)
	if tolerance == nil {
		return nil
	}

	return &gardencorev1beta1.ControlPlane{HighAvailability: &gardencorev1beta1.HighAvailability{
		FailureTolerance: gardencorev1beta1.FailureTolerance{Type: gardencorev1beta1.FailureToleranceType(*tolerance)},
	}}
}

// given returns nil for nil and for "", which mean the same.
func given(text *string) *string {
	if text == nil || *text == "" {
		return nil
	}

	return text
}

// valueOr returns the value of an optional field, or otherwise for nil.
func valueOr[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}

	return *value
}

// Runtime is a cluster to build and its owner.
type Runtime struct {
	ID          string
	OperationID string
	// Tenant and SubAccount must be valid values of labels.
	Tenant     string
	SubAccount string
	Config     *spec.Cluster
}

// Options are the settings that all Shoots of an installation share.
type Options struct {
	// Namespace is that of the Gardener project.
	Namespace string
	// AuditPolicyConfigMap names a ConfigMap in the namespace. If it is empty, Shoots have no audit policy.
	AuditPolicyConfigMap string
	// AuditLogTenant is the account under which the audit logging of the installation files all Shoots, or "".
	AuditLogTenant string
	// AuditLogs are the targets of the extension for audit logs. A Shoot without a target does not get the extension.
	AuditLogs AuditLogs
	// AutoUpdateKubernetes, AutoUpdateMachineImage and RequireIMDSv2 (AWS only) are the defaults of orders.
	AutoUpdateKubernetes   bool
	AutoUpdateMachineImage bool
	RequireIMDSv2          bool
	// MaintenanceWindows are the windows in which Gardener may update Shoots for production, by region. Without one Gardener
	// chooses.
	MaintenanceWindows map[string]gardencorev1beta1.MaintenanceTimeWindow
	// Extensions are the types of the extensions of every Shoot. They must be registered in the Gardener installation.
	Extensions []string
}

// Labels and annotations that identify the owner of a Shoot. Older tools read the legacy ones.
const (
	LabelAccount    = "account"
	LabelSubAccount = "subaccount"
	// LabelRuntimeID selects a Shoot and the other objects of its runtime in the namespace of the project.
	LabelRuntimeID = "provisioner.environment-broker.io/runtime-id"

	AnnotationRuntimeID         = "kcp.provisioner.kyma-project.io/runtime-id"
	AnnotationOperationID       = "kcp.provisioner.kyma-project.io/operation-id"
	AnnotationLicenceType       = "kcp.provisioner.kyma-project.io/licence-type"
	AnnotationLegacyRuntimeID   = "compass.provisioner.kyma-project.io/runtime-id"
	AnnotationLegacyOperationID = "compass.provisioner.kyma-project.io/operation-id"
	AnnotationAuditLogTenant    = "custom.shoot.sapcloud.io/subaccountId"
)

// metadata returns the labels and annotations that name the owner of the Shoot. Steps identify the Shoot of a runtime by
// AnnotationRuntimeID, because names are used again after a deletion.
func metadata(runtime Runtime, options Options) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name:      runtime.Config.Name,
		Namespace: options.Namespace,
		Labels: map[string]string{
			LabelAccount:    runtime.Tenant,
			LabelSubAccount: runtime.SubAccount,
			LabelRuntimeID:  runtime.ID,
		},
		Annotations: map[string]string{
			AnnotationRuntimeID:         runtime.ID,
			AnnotationOperationID:       runtime.OperationID,
			AnnotationLegacyRuntimeID:   runtime.ID,
			AnnotationLegacyOperationID: runtime.OperationID,
		},
	}

	if licence := given(runtime.Config.LicenceType); licence != nil {
		meta.Annotations[AnnotationLicenceType] = *licence
	}

	if options.AuditLogTenant != "" {
		meta.Annotations[AnnotationAuditLogTenant] = options.AuditLogTenant
	}

	return meta
}

// Manifest returns the object for server-side apply, with only the fields that are set: applying a field takes its ownership, and
// a typed Shoot would include an empty status.
func Manifest(object client.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting %T %s: %w", object, object.GetName(), err)
	}

	unstructured.RemoveNestedField(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")

	return &unstructured.Unstructured{Object: fields}, nil
}
