package applier

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// listFrom is the minimum number of objects of one kind and namespace that are read together, with a list. Fewer objects are
	// read one by one.
	listFrom = 4
	// listPage is the maximum number of objects in one response.
	listPage = 100
)

// place identifies the kind and the namespace that one list reads.
type place struct {
	kind      schema.GroupVersionKind
	namespace string
}

// present returns the current state of the objects that could be listed. Objects that are not in the result may exist
// nevertheless: only objects with the owner's labels are listed, and only if the inventory contains several of their kind. If a
// list fails, its objects are not in the result.
func (w *work) present(ctx context.Context, objects []*unstructured.Unstructured) map[ref]*unstructured.Unstructured {
	refs := make([]ref, 0, len(objects))
	for _, object := range objects {
		refs = append(refs, refOf(object))
	}

	found := map[ref]*unstructured.Unstructured{}

	for place, wanted := range w.places(refs) {
		w.list(ctx, place, len(wanted), func() client.ObjectList { return &unstructured.UnstructuredList{} }, func(listed runtime.Object) {
			if object, ok := listed.(*unstructured.Unstructured); ok && wanted[refOf(object)] {
				found[refOf(object)] = object
			}
		})
	}

	return found
}

// problems returns, for each object, the reason why it is not healthy, or "" if it is. Like present, it covers only the objects that
// could be listed.
func (w *work) problems(ctx context.Context, refs []ref) map[ref]string {
	found := map[ref]string{}

	for place, wanted := range w.places(refs) {
		newPage := func() client.ObjectList { return &unstructured.UnstructuredList{} }
		if (ref{Group: place.kind.Group, Kind: place.kind.Kind}).readyByExistence() {
			newPage = func() client.ObjectList { return &metav1.PartialObjectMetadataList{} }
		}

		w.list(ctx, place, len(wanted), newPage, func(listed runtime.Object) {
			switch object := listed.(type) {
			case *metav1.PartialObjectMetadata:
				found[ref{place.kind.Group, place.kind.Version, place.kind.Kind, object.Namespace, object.Name}] = ""
			case *unstructured.Unstructured:
				found[refOf(object)] = problemOf(refOf(object), object)
			}
		})
	}

	return found
}

// places groups the installed objects by kind and namespace. It omits groups with fewer than listFrom objects, and all
// definitions.
func (w *work) places(refs []ref) map[place]map[ref]bool {
	installed := map[ref]bool{}

	for _, entry := range w.inventory.Entries {
		for _, one := range entry.Objects {
			installed[one] = true
		}
	}

	places := map[place]map[ref]bool{}

	for _, one := range refs {
		// Definitions are so large that a page of them could exceed the size limit for responses.
		if !installed[one] || one.isDefinition() {
			continue
		}

		at := place{one.kind(), one.Namespace}
		if places[at] == nil {
			places[at] = map[ref]bool{}
		}

		places[at][one] = true
	}

	maps.DeleteFunc(places, func(_ place, wanted map[ref]bool) bool { return len(wanted) < listFrom })

	return places
}

// list reads the owner's objects of a kind and calls add with each. count is the number of wanted objects. It limits the number
// of pages that list reads, because somebody else may have created many objects with the owner's labels.
func (w *work) list(ctx context.Context, from place, count int, newPage func() client.ObjectList, add func(runtime.Object)) {
	next := ""

	for range count/listPage + 2 { //nolint:mnd // one page that is not full, and one for objects that are no longer wanted
		page := newPage()
		page.GetObjectKind().SetGroupVersionKind(from.kind.GroupVersion().WithKind(from.kind.Kind + "List"))

		if err := w.client.List(ctx, page, client.InNamespace(from.namespace), client.MatchingLabels(w.owner.labels),
			client.Limit(listPage), client.Continue(next)); err != nil {
			return // the caller reads the objects one by one, and these calls report errors
		}

		err := meta.EachListItem(page, func(object runtime.Object) error {
			add(object)

			return nil
		})

		if next = page.GetContinue(); next == "" || err != nil {
			return
		}
	}
}

// read returns the current state of an object. The result has an empty UID if the object does not exist.
func (w *work) read(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	present := &unstructured.Unstructured{}
	present.SetGroupVersionKind(object.GroupVersionKind())

	return present, ignoreGone(w.client.Get(ctx, client.ObjectKeyFromObject(object), present))
}
