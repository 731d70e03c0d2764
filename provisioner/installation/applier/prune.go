package applier

import (
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

// leftovers names the entry of objects that could not be pruned. No component has this name.
const leftovers = ""

// prune removes the objects of former plans that this plan lacks, last component first. Definitions of kinds that still have objects, and
// namespaces with foreign objects, stay: the message names them, and the next installation tries again.
func (w *work) prune(ctx context.Context, plan installation.Plan) (installation.Progress, error) {
	const where = "objects of former releases"
	definitions, rest, namespaces := split(w.unwanted(plan))
	waiting, err := w.remove(ctx, backwards(rest))
	if err != nil {
		return installation.Progress{}, explain(err, where+" cannot be removed", installation.Component{})
	}
	if waiting != "" {
		return installation.Progress{Message: "removing " + where + ": " + waiting}, nil
	}
	var kept []ref
	var notes []string
	for _, object := range slices.Concat(definitions, namespaces) {
		reason, err := w.reasonToKeep(ctx, object)
		if err != nil {
			return installation.Progress{}, explain(err, where+" cannot be removed", installation.Component{})
		}
		if reason != "" {
			kept = append(kept, object)
			notes = append(notes, fmt.Sprintf("%s stays: %s", object, reason))
			continue
		}
		gone, err := w.remove(ctx, []ref{object})
		if err != nil {
			return installation.Progress{}, explain(err, where+" cannot be removed", installation.Component{})
		}
		if waiting == "" {
			waiting = gone
		}
	}
	if waiting != "" {
		return installation.Progress{Message: "removing " + where + ": " + waiting}, nil
	}
	w.done(plan, kept)
	message := fmt.Sprintf("release %s is installed: %d components", plan.Version, len(plan.Components))
	return installation.Progress{Done: true, Message: strings.Join(append([]string{message}, notes...), "; ")}, nil
}

// unwanted lists the objects that are in the inventory but not in the plan, as recorded when the components were applied.
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

func planned(plan installation.Plan, name string) bool {
	return slices.ContainsFunc(plan.Components, func(component installation.Component) bool { return component.Name == name })
}

// done reduces the inventory to the installed objects, in the order of the plan.
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

// reasonToKeep says why the object must not be removed; empty if it may.
func (w *work) reasonToKeep(ctx context.Context, ref ref) (string, error) {
	if ref.isNamespace() {
		return w.foreign(ctx, ref)
	}
	return w.instances(ctx, ref)
}

// instances names an object of the defined kind; empty if there is none.
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
	return fmt.Sprintf("there is still %s", refOf(&found.Items[0])), nil
}
