package clusteraccess

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// remains are the services that are there still, and their bindings.
type remains struct {
	bindings, instances []unstructured.Unstructured
}

// String tells people what is left, and of the first one why: bindings are waited for before their services are. It is empty when nothing is.
func (r remains) String() string {
	if len(r.instances) == 0 {
		return ""
	}

	told := fmt.Sprintf("%d of its services", len(r.instances))
	if len(r.bindings) > 0 {
		told += fmt.Sprintf(" and %d of their bindings", len(r.bindings))
	}

	first := slices.Concat(r.bindings, r.instances)[0]
	told += fmt.Sprintf(", first of all %s %s", first.GetKind(), nameOf(first))

	if why := reasonOf(first); why != "" {
		told += ", which says " + why
	}

	return told
}

// reasonOf is what the service catalog says about an object that is not ready.
func reasonOf(object unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // another type tells nothing

	for _, each := range conditions {
		condition, ok := each.(map[string]any)
		if !ok || condition["type"] != "Ready" || condition["status"] == "True" {
			continue
		}

		said, _ := condition["reason"].(string)
		if message, _ := condition["message"].(string); message != "" {
			said += ": " + message
		}

		return brief(said)
	}

	return ""
}

// staying picks those objects of which nobody has asked yet that they go.
func staying(objects []unstructured.Unstructured) []unstructured.Unstructured {
	var picked []unstructured.Unstructured

	for _, object := range objects {
		if object.GetDeletionTimestamp() == nil {
			picked = append(picked, object)
		}
	}

	return picked
}

// nameOf names an object among those of its kind.
func nameOf(object unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}

	return object.GetNamespace() + "/" + object.GetName()
}

func text(object unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(object.Object, path...) // another type is no name

	return found
}
