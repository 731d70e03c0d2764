package lifecyclemanager

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Ref identifies an object in the control plane.
type Ref struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
}

// String returns the reference as text, such as kymas.v1beta2.operator.kyma-project.io/kcp-system/r-1. Records in the database
// use this text as their key, so its form must never change. ParseRef parses it.
func (r Ref) String() string {
	resource := r.Resource.Resource + "." + r.Resource.Version
	if r.Resource.Group != "" {
		resource += "." + r.Resource.Group
	}

	return resource + "/" + r.Namespace + "/" + r.Name
}

// ParseRef parses the text form of a reference.
func ParseRef(text string) (Ref, error) {
	parts := strings.Split(text, "/")
	resource := strings.SplitN(parts[0], ".", 3) //nolint:mnd // resource, version and group

	if len(parts) != 3 || parts[1] == "" || parts[2] == "" || len(resource) < 2 || resource[0] == "" || resource[1] == "" {
		return Ref{}, failure.New(failure.Internal, "the reference to an object of the control plane is malformed")
	}

	ref := Ref{Resource: schema.GroupVersionResource{Resource: resource[0], Version: resource[1]}, Namespace: parts[1], Name: parts[2]}

	if len(resource) > 2 { //nolint:mnd // with a group
		if ref.Resource.Group = resource[2]; resource[2] == "" {
			return Ref{}, failure.New(failure.Internal, "the reference to an object of the control plane has no API group")
		}
	}

	return ref, nil
}

// path returns the object's API path.
func (r Ref) path() string {
	root := "/apis/" + url.PathEscape(r.Resource.Group)
	if r.Resource.Group == "" {
		root = "/api"
	}

	return root + "/" + url.PathEscape(r.Resource.Version) + "/namespaces/" + url.PathEscape(r.Namespace) + "/" +
		url.PathEscape(r.Resource.Resource) + "/" + url.PathEscape(r.Name)
}
