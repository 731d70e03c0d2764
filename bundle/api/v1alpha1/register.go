package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of all types in this package.
var GroupVersion = schema.GroupVersion{Group: "core.rukpak.io", Version: "v1alpha1"} //nolint:gochecknoglobals // constant; controller-runtime and clients expect this name

// Kinds of this API group.
const (
	KindBundle           = "Bundle"
	KindBundleDeployment = "BundleDeployment"
)

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Bundle{}, &BundleList{}, &BundleDeployment{}, &BundleDeploymentList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)

	return nil
}
