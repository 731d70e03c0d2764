package applier

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Labels of installed objects, which name their owner. The applier deletes only objects with the labels of the owner.
const (
	// LabelInstallation is the label of the objects that the Provisioner installs. Its value is the ID of the runtime.
	LabelInstallation = "provisioner.environment-broker.io/installation"
	// LabelOwnerKind and LabelOwnerName are the labels of the objects that the bundle provisioner installs.
	LabelOwnerKind = "core.rukpak.io/owner-kind"
	LabelOwnerName = "core.rukpak.io/owner-name"
)

const (
	// FieldManager is the field manager of the objects that the Provisioner installs. An apply removes the fields that the manager
	// owns and the release no longer sets.
	FieldManager = "environment-broker"
	// managerOfBundles is the prefix of the field managers of BundleDeployments. Each BundleDeployment has its own field manager.
	managerOfBundles = "core.rukpak.io/"

	// Inventory is the name of the Secret with the Provisioner's inventory, in the cluster's kube-system namespace. If an inventory
	// does not fit into one Secret, this Secret contains the first part and the names of the Secrets with the other parts.
	Inventory = "environment-broker-installation"
	// inventoryOfBundles is the prefix of the names of the Secrets with the inventories of BundleDeployments.
	inventoryOfBundles = "core.rukpak.io.bundledeployment."

	// AnnotationRecreate is an annotation for manifests. If its value is "true" and new content changes an immutable field of the
	// annotated object, the applier deletes the object and creates it again.
	AnnotationRecreate = "provisioner.environment-broker.io/recreate"

	// AnnotationPolicy is a Helm annotation for manifests. If its value is "keep", the annotated object stays on the cluster when
	// its owner omits or removes it. The object keeps the labels of the owner, so a later installation by the same owner takes it
	// over.
	AnnotationPolicy = "helm.sh/resource-policy"
	policyKeep       = "keep"

	kindBundleDeployment = "BundleDeployment"
)

// Owner is a runtime or a BundleDeployment for which objects are installed on a cluster. Each owner has its own inventory, in
// the cluster that contains its objects.
type Owner struct {
	// kind is empty for the Provisioner, because the inventories of its earlier releases have no kind.
	kind, name string
	// title names the owner in messages. source is the noun for its content, such as release. part is the noun for a part of the
	// content, such as component, or empty if there is only one part.
	title, source, part string
	labels              map[string]string
	manager, inventory  string
}

// Runtime returns the owner of the objects that the Provisioner installs on a runtime.
func Runtime(id string) Owner {
	return Owner{
		name: id, title: "the installation", source: "release", part: "component",
		labels: map[string]string{LabelInstallation: id}, manager: FieldManager, inventory: Inventory,
	}
}

// BundleDeployment returns the owner of the objects of a BundleDeployment.
func BundleDeployment(name string) Owner {
	return Owner{
		kind: kindBundleDeployment, name: name, title: kindBundleDeployment + " " + name, source: "bundle",
		labels:  map[string]string{LabelOwnerKind: kindBundleDeployment, LabelOwnerName: name},
		manager: managerOfBundles + name, inventory: inventoryOfBundles + name,
	}
}

// owns reports whether an object has the labels of the owner.
func (o Owner) owns(labels map[string]string) bool {
	for key, value := range o.labels {
		if labels[key] != value {
			return false
		}
	}

	return true
}

// holder describes the owner that the labels of an object name, or returns "" if they do not name an owner.
func holder(labels map[string]string) string {
	switch {
	case labels[LabelOwnerKind] != "":
		return labels[LabelOwnerKind] + " " + labels[LabelOwnerName]
	case labels[LabelInstallation] != "":
		return "the Kyma installation of runtime " + labels[LabelInstallation]
	default:
		return ""
	}
}

// mayApply reports whether the owner may apply an existing object. It may if the object has the owner's labels, if the owner has
// applied the object before and somebody has removed the labels, or if the owner adopts the object.
func (o Owner) mayApply(present *unstructured.Unstructured) bool {
	labels := present.GetLabels()

	return o.owns(labels) || holder(labels) == "" && o.hasApplied(present.GetManagedFields()) || o.adopts(present)
}

// hasApplied reports whether the managed fields of an object show that the owner has applied it.
func (o Owner) hasApplied(managed []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(managed, func(fields metav1.ManagedFieldsEntry) bool {
		return fields.Manager == o.manager && fields.Operation == metav1.ManagedFieldsOperationApply
	})
}

// adopts reports whether the owner takes over the object although the object does not have its labels. A BundleDeployment takes
// over nothing. The Provisioner takes over namespaces without an owner, because a release may contain a namespace that Gardener
// or a user has already created. It also takes over objects of other runtimes: a cluster belongs to one runtime, and a restored
// or reused cluster may contain objects of an earlier runtime.
func (o Owner) adopts(present *unstructured.Unstructured) bool {
	labels := present.GetLabels()

	return o.kind == "" && labels[LabelOwnerKind] == "" && (refOf(present).isNamespace() || labels[LabelInstallation] != "")
}
