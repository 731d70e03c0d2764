package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase summarizes the conditions of a Bundle.
type Phase string

// Phases of a Bundle.
const (
	PhasePending   Phase = "Pending"
	PhaseUnpacking Phase = "Unpacking"
	PhaseFailing   Phase = "Failing"
	PhaseUnpacked  Phase = "Unpacked"
)

// TypeUnpacked is the type of the condition that is true while the content of a Bundle is stored and can be fetched.
const TypeUnpacked = "Unpacked"

// Reasons of the TypeUnpacked condition. The reasons UnpackPending, UnpackSuccessful and UnpackFailed are also used by the
// TypeHasValidBundle condition.
const (
	ReasonUnpackPending             = "UnpackPending"
	ReasonUnpacking                 = "Unpacking"
	ReasonUnpackSuccessful          = "UnpackSuccessful"
	ReasonUnpackFailed              = "UnpackFailed"
	ReasonProcessingFinalizerFailed = "ProcessingFinalizerFailed"

	// ReasonSignatureMissing means that the image has no signature. ReasonSignatureInvalid means that no public key verifies any of
	// its signatures. Neither reason exists in rukpak.
	ReasonSignatureMissing = "SignatureMissing"
	ReasonSignatureInvalid = "SignatureInvalid"
)

// Bundle is content that a provisioner fetches from a source, checks, and serves to authorized clients. Its spec never changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.spec.source.type`
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name=Provisioner,type=string,JSONPath=`.spec.provisionerClassName`,priority=1
// +kubebuilder:printcolumn:name=Digest,type=string,JSONPath=`.status.digest`,priority=1
// +kubebuilder:printcolumn:name=Resolved Source,type=string,JSONPath=`.status.resolvedSource`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a Bundle must have at most 63 characters"
type Bundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BundleSpec `json:"spec"`
	// +optional
	Status BundleStatus `json:"status,omitempty"`
}

// BundleList is a list of Bundles.
//
// +kubebuilder:object:root=true
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bundle `json:"items"`
}

// BundleSpec describes the desired content.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a Bundle cannot change: create another Bundle"
type BundleSpec struct {
	// ProvisionerClassName names the controller that unpacks the Bundle.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ProvisionerClassName string       `json:"provisionerClassName"`
	Source               BundleSource `json:"source"`
}

// BundleStatus describes the content that the provisioner has unpacked, or the reason why it has not.
type BundleStatus struct {
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// ResolvedSource is the source with all movable references pinned: the digest of the image, the commit, or the digest of the archive.
	//
	// +optional
	ResolvedSource *BundleSource `json:"resolvedSource,omitempty"`
	// Digest is the digest of the stored content: sha256: and 64 hexadecimal digits. This field is not in rukpak.
	//
	// +optional
	Digest string `json:"digest,omitempty"`
	// ContentURL is the address of the content, served as a gzip-compressed tar archive to clients that are authorized to get it.
	//
	// +optional
	ContentURL string `json:"contentURL,omitempty"`
	// UploadURL is the address to which authorized clients upload the content of a Bundle with the source upload, as a gzip-compressed
	// tar archive. This field is not in rukpak.
	//
	// +optional
	UploadURL string `json:"uploadURL,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
