package shoot

import (
	"cmp"
	"fmt"
	"reflect"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// networkType is the network plugin of all Shoots, as in Kyma Provisioner. Gardener rejects a change of the plugin.
const networkType = "calico"

// Objects are the objects in Gardener that define a cluster.
type Objects struct {
	Shoot *gardencorev1beta1.Shoot
	// Authentication is a ConfigMap that the Shoot refers to, or nil. It must be applied before the Shoot.
	Authentication *corev1.ConfigMap
	// DroppedPools contains the names of the worker pools that the order removes. The present Shoot may contain further pools, which other
	// programs have added.
	DroppedPools []string

	// adopted reports that another program has created the Shoot. sameProvider reports that the provider's part of the order has not changed
	// since the adoption.
	adopted, sameProvider bool
	// withoutTokens reports that the order turns off the requirement of tokens (IMDSv2).
	withoutTokens bool
}

// Build returns the objects for the runtime. It fails with failure.Invalid if the order has no configuration for its provider. Fields that
// neither the order nor the options determine are not set, so Gardener sets its defaults. Callers apply the Manifest of each object.
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

	adopted, exposureClass := config.Adopted != nil, cmp.Or(ptr.Deref(config.ExposureClassName, ""), cloud.exposureClass)
	if adopted {
		exposureClass = ptr.Deref(config.ExposureClassName, "")
	}

	return &Objects{Authentication: authentication, adopted: adopted, withoutTokens: cloud.withoutTokens, sameProvider: adopted &&
		reflect.DeepEqual(config.Adopted.ProviderSpecificConfig, config.ProviderSpecificConfig), Shoot: &gardencorev1beta1.Shoot{
		TypeMeta:   metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"},
		ObjectMeta: metadata(runtime, options),
		Spec: gardencorev1beta1.ShootSpec{
			CredentialsBindingName: &config.TargetSecret,
			CloudProfile: &gardencorev1beta1.CloudProfileReference{
				Kind: constants.CloudProfileReferenceKindCloudProfile, Name: cloud.profile,
			},
			SeedName:           nonEmpty(config.Seed),
			Region:             config.Region,
			Purpose:            (*gardencorev1beta1.ShootPurpose)(nonEmpty(config.Purpose)),
			ExposureClassName:  nonEmpty(&exposureClass),
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

// kubernetesOf returns the Kubernetes version and the configuration of the API server. It omits an empty configuration, because
// server-side apply would take ownership of the field.
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

// networkingOf returns the networks of the cluster. Gardener chooses the ranges for pods and services if the order omits them.
func networkingOf(config *spec.Cluster, cloud *cloud) *gardencorev1beta1.Networking {
	return &gardencorev1beta1.Networking{
		Type: new(networkType), Nodes: &cloud.nodes, Pods: nonEmpty(config.PodsCIDR), Services: nonEmpty(config.ServicesCIDR),
	}
}

// maintenanceOf returns the settings of automatic updates. Production clusters also get the maintenance window of their region,
// if the operator has configured one.
func maintenanceOf(config *spec.Cluster, options Options) *gardencorev1beta1.Maintenance {
	maintenance := &gardencorev1beta1.Maintenance{AutoUpdate: &gardencorev1beta1.MaintenanceAutoUpdate{
		KubernetesVersion:   ptr.Deref(config.EnableKubernetesVersionAutoUpdate, options.AutoUpdateKubernetes),
		MachineImageVersion: new(ptr.Deref(config.EnableMachineImageVersionAutoUpdate, options.AutoUpdateMachineImage)),
	}}

	window, ok := options.MaintenanceWindows[config.Region]
	if ok && ptr.Deref(config.Purpose, "") == string(gardencorev1beta1.ShootPurposeProduction) {
		maintenance.TimeWindow = &window
	}

	return maintenance
}

// controlPlaneOf returns the failure tolerance of the control plane. If it returns nil, each component of the control plane has
// a single replica.
func controlPlaneOf(config *spec.Cluster) *gardencorev1beta1.ControlPlane {
	tolerance := nonEmpty(config.ControlPlaneFailureTolerance)
	if tolerance == nil {
		return nil
	}

	return &gardencorev1beta1.ControlPlane{HighAvailability: &gardencorev1beta1.HighAvailability{
		FailureTolerance: gardencorev1beta1.FailureTolerance{Type: gardencorev1beta1.FailureToleranceType(*tolerance)},
	}}
}

// nonEmpty returns nil for an empty string, and any other string unchanged. In orders, nil and "" both mean that the field is
// omitted.
func nonEmpty(text *string) *string {
	if text == nil || *text == "" {
		return nil
	}

	return text
}

// Runtime is the input of Build for one cluster.
type Runtime struct {
	// ID identifies the owner of the Shoot, and OperationID the operation that writes it.
	ID          string
	OperationID string
	// Tenant and SubAccount become labels, so they must be valid label values. The original IDs become annotations if they are
	// set.
	Tenant             string
	SubAccount         string
	OriginalTenant     string
	OriginalSubAccount string
	// Record is the value of AnnotationRecord. If it is empty, the Shoot does not get this annotation.
	Record string
	// InstanceID is the ID of the service instance, or empty if the order does not contain it.
	InstanceID string
	// Config is the order for the cluster. Build does not change it.
	Config *spec.Cluster
}

// Options are the settings for all Shoots. Operators configure them with the variables of the Provisioner.
type Options struct {
	// Namespace is the namespace of the Gardener project.
	Namespace string
	// AuditPolicyConfigMap is the name of a ConfigMap in Namespace with the audit policy. If it is empty, Shoots have no audit
	// policy.
	AuditPolicyConfigMap string
	// AuditLogTenant is the account for the audit logs of all Shoots, or "". An annotation of the Shoot passes it to the audit
	// logging of the Gardener installation.
	AuditLogTenant string
	// AuditLogs are the targets of audit logs. A Shoot without a target does not get the extension.
	AuditLogs AuditLogs
	// AutoUpdateKubernetes, AutoUpdateMachineImage and RequireIMDSv2 (AWS only) apply to orders that omit the corresponding field.
	AutoUpdateKubernetes   bool
	AutoUpdateMachineImage bool
	RequireIMDSv2          bool
	// MaintenanceWindows maps regions to the windows in which Gardener may update production Shoots. For a region without a window,
	// Gardener chooses one.
	MaintenanceWindows map[string]gardencorev1beta1.MaintenanceTimeWindow
	// Extensions are the types of the extensions for every Shoot. They must be registered in Gardener.
	Extensions []string
}

// The labels and annotations of Shoots. Most of them identify the owner. The legacy annotations are for tools written for Kyma Provisioner.
const (
	LabelAccount    = "account"
	LabelSubAccount = "subaccount"
	// LabelRuntimeID selects the Shoot and the other objects of a runtime in the namespace of the project.
	LabelRuntimeID = "provisioner.environment-broker.io/runtime-id"

	AnnotationRuntimeID         = "kcp.provisioner.kyma-project.io/runtime-id"
	AnnotationOperationID       = "kcp.provisioner.kyma-project.io/operation-id"
	AnnotationLicenceType       = "kcp.provisioner.kyma-project.io/licence-type"
	AnnotationLegacyRuntimeID   = "compass.provisioner.kyma-project.io/runtime-id"
	AnnotationLegacyOperationID = "compass.provisioner.kyma-project.io/operation-id"
	// AnnotationAccount and AnnotationSubAccount contain the original IDs of an owner if they are not valid label values.
	AnnotationAccount    = "provisioner.environment-broker.io/account"
	AnnotationSubAccount = "provisioner.environment-broker.io/subaccount"
	// AnnotationInstanceID contains the ID of the service instance.
	AnnotationInstanceID = "provisioner.environment-broker.io/instance-id"

	// AnnotationRecord contains the row of the runtime, sealed with the database keys. A row that was lost with a part of the
	// database can be restored from it.
	AnnotationRecord = "provisioner.environment-broker.io/record"

	// AnnotationTraceparent contains the span of the operation that last wrote the Shoot, as a value of the traceparent header of
	// W3C Trace Context. It is absent if this operation is not traced.
	AnnotationTraceparent = "provisioner.environment-broker.io/traceparent"

	AnnotationAuditLogTenant = "custom.shoot.sapcloud.io/subaccountId"
)

// metadata returns the name, labels and annotations of the Shoot. Steps check AnnotationRuntimeID before they change a Shoot,
// because another runtime can reuse the name of a deleted cluster.
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

	if licence := nonEmpty(runtime.Config.LicenceType); licence != nil {
		meta.Annotations[AnnotationLicenceType] = *licence
	}

	if runtime.InstanceID != "" {
		meta.Annotations[AnnotationInstanceID] = runtime.InstanceID
	}

	if runtime.OriginalTenant != "" {
		meta.Annotations[AnnotationAccount] = runtime.OriginalTenant
	}

	if runtime.OriginalSubAccount != "" {
		meta.Annotations[AnnotationSubAccount] = runtime.OriginalSubAccount
	}

	if runtime.Record != "" {
		meta.Annotations[AnnotationRecord] = runtime.Record
	}

	if options.AuditLogTenant != "" {
		meta.Annotations[AnnotationAuditLogTenant] = options.AuditLogTenant
	}

	return meta
}

// SetTrace sets AnnotationTraceparent, or leaves it out if traceparent is empty. The value must be the same for all attempts of an operation,
// so that repeating an attempt does not change the Shoot.
func (o *Objects) SetTrace(traceparent string) {
	if traceparent != "" {
		o.Shoot.Annotations[AnnotationTraceparent] = traceparent
	}
}

// Manifest returns the object for server-side apply. It contains only the fields that are set, because an apply takes ownership
// of every field that it contains, and a typed Shoot would include an empty status.
func Manifest(object client.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting %T %s: %w", object, object.GetName(), err)
	}

	unstructured.RemoveNestedField(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")

	return &unstructured.Unstructured{Object: fields}, nil
}
