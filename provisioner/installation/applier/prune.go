package applier

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/provisioner/installation"
)

const (
	// leftovers is the name of the inventory entry for objects that prune could not remove. It is empty, so it cannot equal the
	// name of a component.
	leftovers = ""
	// formerObjects describes the objects of leftovers in messages.
	formerObjects = "objects of earlier releases"
)

// prune removes the objects that earlier plans installed and this plan omits, in the reverse order of their kinds, and completes
// the installation. It keeps definitions that still have objects, and namespaces with objects of other owners. The message names
// them, and the next installation tries again to remove them.
func (w *work) prune(ctx context.Context, plan installation.Plan) (installation.Progress, error) {
	definitions, rest, namespaces := split(w.unwanted(plan))
	waiting, err := w.remove(ctx, backwards(rest))
	if err != nil || waiting != "" {
		return removing(formerObjects, waiting), err
	}
	var kept []ref
	var notes []string
	for _, object := range slices.Concat(definitions, namespaces) {
		reason, err := w.reasonToKeep(ctx, object)
		if err != nil {
			return installation.Progress{}, err
		}
		if reason != "" {
			kept = append(kept, object)
			notes = append(notes, fmt.Sprintf("%s is kept: %s", object, reason))
			continue
		}
		gone, err := w.remove(ctx, []ref{object})
		if err != nil {
			return installation.Progress{}, err
		}
		waiting = cmp.Or(waiting, gone)
	}
	if waiting != "" {
		return removing(formerObjects, waiting), nil
	}
	w.done(plan, kept)
	message := fmt.Sprintf("release %s is installed: %d components", plan.Version, len(plan.Components))
	return installation.Progress{Done: true, Message: strings.Join(append([]string{message}, notes...), "; ")}, nil
}

// removing returns the progress of an unfinished removal. waiting is the object that the removal waits for, or its next step.
func removing(subject, waiting string) installation.Progress {
	return installation.Progress{Message: "removing " + subject + ": " + waiting}
}

// unwanted returns the objects in the inventory that no component of the plan contains. When prune calls it, all components of
// the plan have been applied and the inventory lists their current objects. An object that moved from one component to another
// is not returned.
func (w *work) unwanted(plan installation.Plan) []ref {
	var wanted, all []ref
	for _, entry := range slices.Backward(w.inventory.Entries) {
		if planned(plan, entry.Name) {
			wanted = union(wanted, entry.Objects)
		} else {
			all = union(all, entry.Objects)
		}
		all = union(all, entry.Former)
	}
	return without(all, wanted)
}

// planned reports whether the plan contains a component with the name.
func planned(plan installation.Plan, name string) bool {
	return slices.ContainsFunc(plan.Components, func(component installation.Component) bool { return component.Name == name })
}

// done reduces the inventory to the installed objects, in the order of the plan, and clears the recorded progress.
func (w *work) done(plan installation.Plan, kept []ref) {
	var entries []*entry
	if len(kept) > 0 {
		entries = append(entries, &entry{Name: leftovers, Objects: kept})
	}
	for _, component := range plan.Components {
		entries = append(entries, &entry{Name: component.Name, Objects: w.inventory.entry(component.Name).Objects})
	}
	w.inventory.Entries, w.changed = entries, true
}

// reasonToKeep returns the reason why a definition or namespace must not be removed, or "".
func (w *work) reasonToKeep(ctx context.Context, ref ref) (string, error) {
	if ref.isNamespace() {
		return w.reasonToKeepNamespace(ctx, ref)
	}
	return w.instances(ctx, ref)
}

// instances returns a message about an object of the defined kind, or "" if there is none. Deleting the definition would delete
// such objects, which may belong to users. instances lists the objects in the last of the definition's stored versions, because
// the API server serves that version.
func (w *work) instances(ctx context.Context, definition ref) (string, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(definition.kind())
	err := w.client.Get(ctx, definition.key(), object)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if object.GetLabels()[LabelInstallation] != w.runtimeID || object.GetDeletionTimestamp() != nil {
		return "", nil
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	stored, _, _ := unstructured.NestedStringSlice(object.Object, "status", "storedVersions")
	if len(stored) == 0 {
		return "", nil
	}
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: stored[len(stored)-1], Kind: kind + "List"})
	if err := w.client.List(ctx, found, client.Limit(1)); ignoreGone(err) != nil {
		return "", err
	}
	if len(found.Items) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s still exists", refOf(&found.Items[0])), nil
}
