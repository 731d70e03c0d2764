package fakecontrolplane

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// list serves the objects of a namespace that match the label selector, in pages whose maximum size is the limit parameter of the
// request.
func (c *ControlPlane) list(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())

			return
		}

		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		items, next := []any{}, ""

		for _, name := range slices.Sorted(maps.Keys(c.objects[kind])) {
			object := c.objects[kind][name]
			if object.GetNamespace() != r.PathValue("namespace") || !selector.Matches(labels.Set(object.GetLabels())) || name <= r.URL.Query().Get("continue") {
				continue
			}

			if limit > 0 && len(items) == limit {
				next = object.GetNamespace() + "/" + lastName(items)

				break
			}

			items = append(items, object.Object)
		}

		simulator.WriteJSON(w, http.StatusOK, map[string]any{
			"apiVersion": "v1", "kind": kind + "List", "metadata": map[string]any{"continue": next}, "items": items,
		})
	}
}

func lastName(items []any) string {
	last, _ := items[len(items)-1].(map[string]any)

	return (&unstructured.Unstructured{Object: last}).GetName()
}

// get serves an object. After reading a Kyma resource, it simulates the next step of Lifecycle Manager.
func (c *ControlPlane) get(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found := c.objects[kind][key(r)]
		if found == nil {
			refuse(w, http.StatusNotFound, "not found")

			return
		}

		if kind == "Kyma" && c.held != "" {
			c.report(found, c.held)
		}

		simulator.WriteJSON(w, http.StatusOK, found.DeepCopy().Object)

		if kind == "Kyma" {
			c.reconcile(found, key(r))
		}
	}
}

// reconcile simulates the next step of Lifecycle Manager.
func (c *ControlPlane) reconcile(kyma *unstructured.Unstructured, name string) {
	secret := c.objects["Secret"][kyma.GetNamespace()+"/kubeconfig-"+kyma.GetName()]

	switch {
	case kyma.GetDeletionTimestamp() != nil:
		if !c.stuck || secret == nil {
			delete(c.objects["Kyma"], name)
		}
	case c.held == "" && secret == nil: // Lifecycle Manager cannot reach the runtime
		c.report(kyma, "Error")
	case c.held == "":
		c.report(kyma, "Ready")
	}
}

// report sets the state of a Kyma resource and of its modules.
func (c *ControlPlane) report(kyma *unstructured.Unstructured, state string) {
	modules := []any{}
	for _, name := range Modules(*kyma) {
		modules = append(modules, map[string]any{"name": name, "state": state, "message": c.message})
	}

	kyma.Object["status"] = map[string]any{
		"state": state, "modules": modules,
		"conditions":    []any{map[string]any{"type": "Modules", "status": "True", "observedGeneration": kyma.GetGeneration()}},
		"lastOperation": map[string]any{"operation": c.message},
	}
}

// patch changes an object by server-side apply or by a merge patch. Server-side apply creates a missing object. It replaces all
// fields of an existing object, because the broker is the only field manager.
func (c *ControlPlane) patch(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, valid := decode(r)
		stored := c.objects[kind][key(r)]
		contentType := r.Header.Get("Content-Type")

		switch {
		case !valid:
			refuse(w, http.StatusBadRequest, "the body is not an object")
		case contentType == "application/merge-patch+json" && stored == nil:
			refuse(w, http.StatusNotFound, "not found")
		case contentType == "application/merge-patch+json":
			merge(stored.Object, body)
			simulator.WriteJSON(w, http.StatusOK, stored.Object)
		case contentType != "application/apply-patch+yaml" || r.URL.Query().Get("fieldManager") == "":
			refuse(w, http.StatusUnsupportedMediaType, "unsupported patch")
		default:
			simulator.WriteJSON(w, http.StatusOK, c.apply(kind, key(r), body).Object)
		}
	}
}

// apply creates or replaces an object.
func (c *ControlPlane) apply(kind, name string, body map[string]any) *unstructured.Unstructured {
	applied := &unstructured.Unstructured{Object: body}
	former := c.objects[kind][name]

	if former == nil {
		c.created++
		former = &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}}
		former.SetUID(types.UID("uid-" + strconv.Itoa(c.created)))
	}

	applied.SetUID(former.GetUID())
	applied.SetDeletionTimestamp(former.GetDeletionTimestamp())
	applied.SetGeneration(former.GetGeneration() + 1)

	if kind == "Kyma" {
		applied.Object["status"] = former.Object["status"]
	}

	c.objects[kind][name] = applied

	if kind == "Kyma" && c.held == "" && applied.GetDeletionTimestamp() == nil {
		c.report(applied, "Processing")
	}

	return applied
}

// merge applies a JSON merge patch to the object into.
func merge(into, patch map[string]any) {
	for name, value := range patch {
		inner, isObject := value.(map[string]any)
		present, wasObject := into[name].(map[string]any)

		switch {
		case value == nil:
			delete(into, name)
		case isObject && wasObject:
			merge(present, inner)
		default:
			into[name] = value
		}
	}
}

// remove deletes an object. A Kyma resource is only marked as deleted; the simulated Lifecycle Manager removes it later.
func (c *ControlPlane) remove(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found := c.objects[kind][key(r)]

		switch {
		case found == nil:
			refuse(w, http.StatusNotFound, "not found")

			return
		case kind != "Kyma":
			delete(c.objects[kind], key(r))
		case found.GetDeletionTimestamp() == nil:
			found.SetDeletionTimestamp(new(metav1.Now()))
			c.report(found, "Deleting")
		}

		simulator.WriteJSON(w, http.StatusOK, found.Object)
	}
}
