// Package v1alpha1 is the API core.rukpak.io/v1alpha1: Bundle and BundleDeployment. Manifests that were written for rukpak v0.15
// can be applied unchanged. Comments mark the fields that rukpak does not have.
//
// The CustomResourceDefinitions in resources/crds are generated from these types. Their CEL rules reject objects that no
// provisioner could process, so the API server reports such mistakes when a manifest is applied.
//
// +kubebuilder:object:generate=true
// +groupName=core.rukpak.io
package v1alpha1

//go:generate go tool controller-gen object paths=.
//go:generate go tool controller-gen crd:generateEmbeddedObjectMeta=true paths=. output:crd:dir=../../../resources/crds
