package runtimes

import (
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// apply is server-side apply, the only patch that there is.
func apply(at target, r *http.Request) (int, any, error) {
	if r.Header.Get("Content-Type") != string(types.ApplyPatchType) {
		return 0, nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", at.path().GroupResource(), at.name,
			"the simulated runtime patches by "+string(types.ApplyPatchType)+" only", 0, true)
	}
	wanted := &unstructured.Unstructured{}
	body, err := io.ReadAll(io.LimitReader(r.Body, largestObject))
	if err != nil || yaml.Unmarshal(body, &wanted.Object) != nil || wanted.GroupVersionKind() != at.GroupVersionKind || wanted.GetName() != at.name {
		return 0, nil, apierrors.NewBadRequest("the body is no " + at.Kind + " of that name")
	}
	if err := at.place(wanted); err != nil {
		return 0, nil, err
	}
	at.objects.conditional.Lock()
	defer at.objects.conditional.Unlock()
	status := http.StatusOK
	present, err := at.present()
	switch {
	case apierrors.IsNotFound(err):
		status = http.StatusCreated
	case err != nil:
		return 0, nil, err
	}
	if version := wanted.GetResourceVersion(); version != "" && (status == http.StatusCreated || version != present.GetResourceVersion()) {
		return 0, nil, apierrors.NewConflict(at.path().GroupResource(), at.name, errors.New("the object has been modified"))
	}
	query := r.URL.Query()
	options := metav1.PatchOptions{FieldManager: query.Get("fieldManager"), Force: new(query.Get("force") == "true")}
	if query.Get("dryRun") == metav1.DryRunAll {
		shown, err := at.objects.Preview(at.path(), wanted, at.namespace, options)
		if err == nil {
			shown.GetObjectKind().SetGroupVersionKind(at.GroupVersionKind)
		}
		return status, shown, err
	}
	if err := at.objects.Apply(at.path(), wanted, at.namespace, options); err != nil {
		return 0, nil, err
	}
	applied, err := at.present()
	if err != nil {
		return 0, nil, err
	}
	applied.GetObjectKind().SetGroupVersionKind(at.GroupVersionKind)
	return status, applied, at.end(applied)
}

// present is the object as it is stored.
func (t target) present() (client.Object, error) {
	found, err := t.objects.Get(t.path(), t.namespace, t.name)
	if err != nil {
		return nil, err
	}
	object, ok := found.(client.Object)
	if !ok {
		return nil, errors.New("a stored object has no metadata")
	}
	return object, nil
}
