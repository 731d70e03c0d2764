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
)

// leftovers is the name of the inventory entry for objects that prune could not remove. It is empty, so it cannot equal a part's
// name.
const leftovers = ""

// prune completes an installation: it removes the objects of earlier content that the new content omits, dependents first. It
// keeps CustomResourceDefinitions that still have objects, and namespaces with objects of other owners. The message of the result
// names the kept objects. The next installation tries to remove them again.
func (w *work) prune(ctx context.Context, content Content) (Progress, error) {
	if err := w.removeStrays(ctx); err != nil {
		return Progress{}, err
	}
	definitions, rest, namespaces := split(w.unwanted(content))
	waiting, err := w.removeInOrder(ctx, rest)
	if err != nil || waiting != "" {
		return removing(w.owner.former(), waiting), err
	}
	var kept []ref
	var notes []string
	for _, object := range slices.Concat(definitions, namespaces) {
		reason, err := w.reasonToKeep(ctx, object)
		if err != nil {
			return Progress{}, err
		}
		if reason != "" {
			kept = append(kept, object)
			notes = append(notes, fmt.Sprintf("%s is kept: %s", object, reason))
			continue
		}
		gone, err := w.remove(ctx, []ref{object})
		if err != nil {
			return Progress{}, err
		}
		waiting = cmp.Or(waiting, gone)
	}
	if waiting != "" {
		return removing(w.owner.former(), waiting), nil
	}
	w.done(content, kept)
	return Progress{Done: true, Message: strings.Join(append([]string{content.Installed}, notes...), "; "), Objects: w.objects()}, nil
}

// removing returns the progress of an unfinished removal. waiting describes the object for which the removal waits, or states
// that the removal has not started yet.
func removing(subject, waiting string) Progress {
	return Progress{Message: "removing " + subject + ": " + waiting}
}

// unwanted returns the objects in the inventory that no part of the content contains. When prune calls it, all parts have been
// applied and the inventory lists their current objects. An object that moved from one part to another is not returned.
func (w *work) unwanted(content Content) []ref {
	var wanted, all []ref
	for _, entry := range slices.Backward(w.inventory.Entries) {
		if content.has(entry.Name) {
			wanted = union(wanted, entry.Objects)
		} else {
			all = union(all, entry.Objects)
		}
		all = union(all, entry.Former)
	}
	return without(all, wanted)
}

// has reports whether the content has a part with the given name.
func (c Content) has(name string) bool {
	return slices.ContainsFunc(c.Parts, func(part Part) bool { return part.Name == name })
}

// done reduces the inventory to the kept objects and the installed objects of the content, and clears the recorded progress.
func (w *work) done(content Content, kept []ref) {
	var entries []*entry
	if len(kept) > 0 {
		entries = append(entries, &entry{Name: leftovers, Objects: kept})
	}
	for _, part := range content.Parts {
		entries = append(entries, &entry{Name: part.Name, Objects: w.inventory.entry(part.Name).Objects})
	}
	w.inventory.Entries = entries
	w.changed = !content.SkipUnchanged || w.inventory.differs()
}

// reasonToKeep returns the reason why a definition or namespace must not be removed, or "".
func (w *work) reasonToKeep(ctx context.Context, ref ref) (string, error) {
	if ref.isNamespace() {
		return w.reasonToKeepNamespace(ctx, ref)
	}
	return w.instances(ctx, ref)
}

// instances returns a message about an object of the defined kind, or "" if there is none. Deleting the definition would delete
// such objects, which may belong to users. instances lists the objects in any version that the API server serves. If it serves none,
// instances cannot find the objects, so the definition must not be removed.
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
	if !w.owner.owns(object.GetLabels()) || object.GetDeletionTimestamp() != nil {
		return "", nil
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	stored, _, _ := unstructured.NestedStringSlice(object.Object, "status", "storedVersions")
	if len(stored) == 0 {
		return "", nil
	}
	version := servedVersion(object)
	if version == "" {
		return "none of its versions is served, so it may still have objects", nil
	}
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
	if err := w.client.List(ctx, found, client.Limit(1)); ignoreGone(err) != nil {
		return "", err
	}
	if len(found.Items) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s still exists", refOf(&found.Items[0])), nil
}

// servedVersion returns the name of a version of a definition that the API server serves, or "". The version in which the API server
// stores objects need not be served.
func servedVersion(definition *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, each := range versions {
		version, _ := each.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			return name
		}
	}
	return ""
}
