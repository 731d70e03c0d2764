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
	// listFrom is the number of objects of one kind and namespace from which they are listed rather than read one by one.
	listFrom = 4
	// listPage is the maximum number of objects in one response.
	listPage = 100
)

// place is where the objects of one list are.
type place struct {
	kind      schema.GroupVersionKind
	namespace string
}

// present returns the current state of those objects that a list contains. The others may exist, too: only objects with the labels of the
// owner are listed, and only if the inventory has several of a kind. A list that fails leaves its objects out.
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

// problems returns why objects do not work, with "" for those that do. It has only objects that a list contains, like present.
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

// places returns the objects that can be listed, by their place.
func (w *work) places(refs []ref) map[place]map[ref]bool {
	installed := map[ref]bool{}

	for _, entry := range w.inventory.Entries {
		for _, one := range entry.Objects {
			installed[one] = true
		}
	}

	places := map[place]map[ref]bool{}

	for _, one := range refs {
		// Definitions are so large that a page of them may exceed the limit of a response.
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

// list reads the owner's objects of a kind. Somebody else may have created many with the labels of the owner, so it reads no more pages than
// the number of wanted objects needs.
func (w *work) list(ctx context.Context, from place, count int, newPage func() client.ObjectList, add func(runtime.Object)) {
	next := ""

	for range count/listPage + 2 { //nolint:mnd // one page that is not full, and one for objects that are no longer wanted
		page := newPage()
		page.GetObjectKind().SetGroupVersionKind(from.kind.GroupVersion().WithKind(from.kind.Kind + "List"))

		if err := w.client.List(ctx, page, client.InNamespace(from.namespace), client.MatchingLabels(w.owner.labels),
			client.Limit(listPage), client.Continue(next)); err != nil {
			return // the objects are read one by one, and each call reports its own problem
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

// read returns the current state of an object. Its UID is empty if it does not exist.
func (w *work) read(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	present := &unstructured.Unstructured{}
	present.SetGroupVersionKind(object.GroupVersionKind())

	return present, ignoreGone(w.client.Get(ctx, client.ObjectKeyFromObject(object), present))
}
