package applier

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inventory lists the installed objects of an owner and records the progress of an installation. It is stored as JSON in
// clusters, so its fields must stay compatible.
type inventory struct {
	// Cluster is the UID of the kube-system namespace, which identifies the cluster. In a cluster that was restored from a
	// backup, the UID differs, and the recorded progress is ignored.
	Cluster types.UID `json:"cluster"`
	// Owner is the name of the owner. Its JSON name dates from the time when only runtimes had an inventory.
	Owner string `json:"runtime"`
	Kind  string `json:"kind,omitempty"`
	// Entries describe the parts, in the order in which they were installed.
	Entries []*entry `json:"entries"`

	stored stored
}

// entry records the objects and the progress of one part.
type entry struct {
	Name string `json:"name"`
	// Objects are the objects of the part. They are recorded before they are applied, so some might not exist yet.
	Objects []ref `json:"objects,omitempty"`
	// Former lists objects of earlier content, which prune removes.
	Former []ref `json:"former,omitempty"`
	// Applied is the digest of the applied content; Ready records that its objects are healthy. Both are reset when an installation
	// is done.
	Applied string `json:"applied,omitempty"`
	Ready   bool   `json:"ready,omitempty"`
}

// ref identifies an object in a cluster. Namespace is empty for cluster-scoped kinds.
type ref struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func refOf(object *unstructured.Unstructured) ref {
	kind := object.GroupVersionKind()
	return ref{kind.Group, kind.Version, kind.Kind, object.GetNamespace(), object.GetName()}
}

// String returns the kind, namespace and name, for messages to users.
func (r ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

func (r ref) kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// sameObject reports whether r and other refer to the same object, regardless of the version of its kind.
func (r ref) sameObject(other ref) bool {
	other.Version = r.Version
	return r == other
}

func (r ref) isNamespace() bool { return r.Group == "" && r.Kind == "Namespace" }

// groupDefinitions is the API group of CustomResourceDefinitions.
const groupDefinitions = "apiextensions.k8s.io"

// isDefinition reports whether the object is a CustomResourceDefinition, which this package calls a definition.
func (r ref) isDefinition() bool {
	return r.Group == groupDefinitions && r.Kind == "CustomResourceDefinition"
}

func (r ref) isClusterRole() bool {
	return r.Group == "rbac.authorization.k8s.io" && r.Kind == "ClusterRole"
}

// isCustom reports whether the kind does not belong to Kubernetes itself, judging by its group. The groups of other projects may have
// the same suffix as those of Kubernetes. The client's scheme contains the groups of Kubernetes, except those of definitions and API services.
func (r ref) isCustom() bool {
	return strings.Contains(r.Group, ".") && !scheme.Scheme.IsGroupRegistered(r.Group) && r.Group != groupDefinitions &&
		r.Group != "apiregistration.k8s.io"
}

// isBase reports whether other objects depend on objects of this kind. Such kinds are namespaces, definitions, cluster roles and
// cluster-scoped classes. A class in a namespace needs this namespace itself.
func (r ref) isBase() bool {
	return r.isNamespace() || r.isDefinition() || r.isClusterRole() ||
		strings.HasSuffix(r.Kind, "Class") && r.Namespace == ""
}

// bare returns an object with only its kind, namespace and name, for calls that need only metadata.
func (r ref) bare() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(r.kind())
	object.SetNamespace(r.Namespace)
	object.SetName(r.Name)

	return object
}

func (r ref) key() client.ObjectKey { return client.ObjectKey{Namespace: r.Namespace, Name: r.Name} }

// entry returns the entry of the named part. If there is none, it adds one.
func (i *inventory) entry(name string) *entry {
	for _, entry := range i.Entries {
		if entry.Name == name {
			return entry
		}
	}
	made := &entry{Name: name}
	i.Entries = append(i.Entries, made)
	return made
}

// forget clears the recorded progress, so that the next call applies every part again.
func (i *inventory) forget() {
	for _, entry := range i.Entries {
		entry.Applied, entry.Ready = "", false
	}
}

// intend records the objects of the part's new content. Objects that the new content omits move to Former.
func (e *entry) intend(objects []ref) {
	sortRefs(objects)
	if slices.Equal(e.Objects, objects) {
		return
	}
	e.Former = without(union(e.Former, e.Objects), objects)
	e.Objects, e.Applied, e.Ready = objects, "", false
}

// lists reports whether the entry lists exactly the given objects, and no objects of earlier content.
func (e *entry) lists(objects []ref) bool {
	sortRefs(objects)
	return slices.Equal(e.Objects, objects) && len(e.Former) == 0
}

func sortRefs(refs []ref) {
	slices.SortFunc(refs, func(a, b ref) int { return cmp.Compare(a.String(), b.String()) })
}

// has, union and without are set operations on references. They ignore API versions, because new content may use another version
// for an existing object.
func has(refs []ref, wanted ref) bool { return slices.ContainsFunc(refs, wanted.sameObject) }

func union(refs, more []ref) []ref { return append(slices.Clone(refs), without(more, refs)...) }

func without(refs, others []ref) []ref {
	return slices.DeleteFunc(slices.Clone(refs), func(one ref) bool { return has(others, one) })
}
