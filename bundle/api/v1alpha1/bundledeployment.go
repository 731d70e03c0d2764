package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Conditions of a BundleDeployment.
const (
	// TypeHasValidBundle is false if the Bundle that the template describes cannot be unpacked or read. It is true while the Bundle is
	// being unpacked.
	TypeHasValidBundle = "HasValidBundle"
	// TypeInstalled is true while the objects of the active Bundle are installed.
	TypeInstalled = "Installed"
	// TypeHealthy is true while all installed objects are healthy.
	TypeHealthy = "Healthy"
)

// Reasons of the conditions of a BundleDeployment.
const (
	ReasonReconcileFailed          = "ReconcileFailed"
	ReasonBundleLoadFailed         = "BundleLoadFailed"
	ReasonReadingContentFailed     = "ReadingContentFailed"
	ReasonErrorGettingClient       = "ErrorGettingClient"
	ReasonErrorGettingReleaseState = "ErrorGettingReleaseState"
	ReasonInstallFailed            = "InstallFailed"
	ReasonUpgradeFailed            = "UpgradeFailed"
	ReasonInstallationSucceeded    = "InstallationSucceeded"
	ReasonInstallationStatusFalse  = "InstallationStatusFalse"
	ReasonHealthy                  = "Healthy"
	ReasonUnhealthy                = "Unhealthy"
	ReasonObjectLookupFailure      = "ObjectLookupFailure"

	// ReasonInstallPending and the reasons after it do not exist in rukpak.
	ReasonInstallPending    = "InstallPending"
	ReasonDependencyPending = "DependencyPending"
	ReasonSuspended         = "Suspended"
	ReasonDryRun            = "DryRun"
	ReasonUninstalling      = "Uninstalling"
	ReasonUninstallFailed   = "UninstallFailed"
)

// Labels of the Bundles that a BundleDeployment creates, and of the objects that it installs.
const (
	LabelOwnerKind    = "core.rukpak.io/owner-kind"
	LabelOwnerName    = "core.rukpak.io/owner-name"
	LabelTemplateHash = "core.rukpak.io/bundle-template-hash"
)

// BundleDeployment installs the content of a Bundle on a cluster. When its template changes, it pivots to a new Bundle.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName={bd,bds}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Active Bundle,type=string,JSONPath=`.status.activeBundle`
// +kubebuilder:printcolumn:name=Install State,type=string,JSONPath=`.status.conditions[?(@.type=="Installed")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name=Provisioner,type=string,JSONPath=`.spec.provisionerClassName`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a BundleDeployment must have at most 63 characters"
type BundleDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BundleDeploymentSpec `json:"spec"`
	// +optional
	Status BundleDeploymentStatus `json:"status,omitempty"`
}

// BundleDeploymentList is a list of BundleDeployments.
//
// +kubebuilder:object:root=true
type BundleDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BundleDeployment `json:"items"`
}

// BundleDeploymentSpec describes the desired installation.
//
// +kubebuilder:validation:XValidation:rule="!has(self.dryRunOf) || size(self.dryRunOf) == 0 || has(self.dryRun) && self.dryRun",message="dryRunOf needs dryRun"
// +kubebuilder:validation:XValidation:rule="has(self.target) == has(oldSelf.target) && (!has(self.target) || self.target == oldSelf.target)",message="spec.target cannot change, because the objects on the former cluster would remain: create another BundleDeployment"
type BundleDeploymentSpec struct {
	// ProvisionerClassName names the controller that installs the Bundle. It may differ from the class of the template.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ProvisionerClassName string `json:"provisionerClassName"`
	// Template describes the Bundle to install.
	Template BundleTemplate `json:"template"`
	// Config contains settings for the controller of the class, for example the values of a chart. When it changes, the same Bundle
	// is installed again.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config runtime.RawExtension `json:"config,omitempty"`
	// InstallNamespace is the namespace for namespaced objects that do not specify one. It is created if it does not exist. The
	// default is "default". This field is not in rukpak.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	InstallNamespace string `json:"installNamespace,omitempty"`
	// Target is the cluster to install on. The default is the cluster of the BundleDeployment. It cannot change. This field is not in
	// rukpak.
	//
	// +optional
	Target *Target `json:"target,omitempty"`
	// DependsOn lists BundleDeployments that must be installed and healthy first. This field is not in rukpak.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// Suspend prevents all changes to the target cluster until it is set to false again. If the BundleDeployment is deleted in the
	// meantime, its objects stay on the cluster, and an event reports this. This field is not in rukpak.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// DryRun only compares the Bundle with the cluster, and reports the differences in status.comparison. This field is not in rukpak.
	//
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
	// DryRunOf names another BundleDeployment. The dry run then shows what would change if that BundleDeployment installed the Bundle
	// next, but with the target and the install namespace of this BundleDeployment. This field is not in rukpak.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DryRunOf string `json:"dryRunOf,omitempty"`
	// DeletionTimeout limits how long a deletion waits until the objects on the target cluster are gone. After this time, the
	// BundleDeployment is removed, and an event lists the remaining objects. The default is 5m. This field is not in rukpak.
	//
	// +optional
	DeletionTimeout *metav1.Duration `json:"deletionTimeout,omitempty"`
	// DeletionPolicy determines whether a deletion removes CustomResourceDefinitions. The default is Uninstall. This field is not in
	// rukpak.
	//
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// DeletionPolicy determines what the deletion of a BundleDeployment removes.
//
// +kubebuilder:validation:Enum=Uninstall;KeepUsed
type DeletionPolicy string

const (
	// DeletionPolicyUninstall removes all objects. A CustomResourceDefinition is removed with all objects of its kind.
	DeletionPolicyUninstall DeletionPolicy = "Uninstall"
	// DeletionPolicyKeepUsed keeps a CustomResourceDefinition while its kind has objects that the BundleDeployment did not install.
	DeletionPolicyKeepUsed DeletionPolicy = "KeepUsed"
)

// BundleTemplate describes a Bundle. Of its metadata, only labels and annotations are used.
type BundleTemplate struct {
	// +optional
	Metadata metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec     TemplateSpec      `json:"spec"`
}

// TemplateSpec has the same fields as BundleSpec. Unlike a BundleSpec, it may change.
type TemplateSpec struct {
	// ProvisionerClassName names the controller that unpacks the Bundle.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ProvisionerClassName string       `json:"provisionerClassName"`
	Source               BundleSource `json:"source"`
}

// Target names a cluster.
type Target struct {
	// KubeconfigSecretRef names a Secret with a kubeconfig.
	KubeconfigSecretRef SecretKeyReference `json:"kubeconfigSecretRef"`
}

// SecretKeyReference names a key of a Secret in the provisioner's namespace.
type SecretKeyReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +optional
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// Dependency names another BundleDeployment.
type Dependency struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// BundleDeploymentStatus describes the installed Bundle and the state of its objects, as last observed.
type BundleDeploymentStatus struct {
	// ActiveBundle names the Bundle whose objects are installed. It changes to another Bundle only after the objects of that Bundle
	// are installed.
	//
	// +optional
	ActiveBundle string `json:"activeBundle,omitempty"`
	// ActiveConfig is the value of spec.config with which the active Bundle was installed. This field is not in rukpak.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ActiveConfig *runtime.RawExtension `json:"activeConfig,omitempty"`
	// History lists the installed versions, newest first. The oldest versions are dropped when the list exceeds ten versions or 256
	// KiB. This field is not in rukpak.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	History []Version `json:"history,omitempty"`
	// Comparison is the result of a dry run. This field is not in rukpak.
	//
	// +optional
	Comparison *Comparison `json:"comparison,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Version is an installation of a Bundle.
type Version struct {
	// Number is the sequence number of the installation, starting with 1.
	Number int64 `json:"number"`
	// Bundle is the name of the installed Bundle. The Bundle itself is deleted when another one has been installed.
	Bundle string `json:"bundle"`
	// Digest is the digest of the Bundle's content.
	//
	// +optional
	Digest string `json:"digest,omitempty"`
	// InstalledAt is the time at which the installation of the version was complete.
	InstalledAt metav1.Time `json:"installedAt"`
	// Template describes a Bundle with the same content: its source is the status.resolvedSource of the installed Bundle.
	Template BundleTemplate `json:"template"`
	// Config is the value of spec.config with which the version was installed.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config *runtime.RawExtension `json:"config,omitempty"`
}

// Comparison describes the differences between a Bundle and a cluster. It does not contain values of Secrets.
type Comparison struct {
	// Bundle is the name of the compared Bundle.
	Bundle string `json:"bundle"`
	// Differences lists the objects that an installation would change, at most 1000.
	//
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	Differences []ObjectDifference `json:"differences"`
	// Omitted is the number of objects that Differences does not list.
	//
	// +optional
	Omitted int `json:"omitted,omitempty"`
}

// ObjectDifference describes the effect of an installation on an object.
type ObjectDifference struct {
	// Action is create, change or delete.
	//
	// +kubebuilder:validation:Enum=create;change;delete
	Action string `json:"action"`
	// Object is the kind and name of the object.
	Object string `json:"object"`
	// Diff is a unified diff of the object in YAML. It is empty if the object would be deleted, and shortened if it is long.
	//
	// +optional
	Diff string `json:"diff,omitempty"`
}
