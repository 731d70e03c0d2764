package applier

import (
	"encoding/base64"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const fieldStringData = "stringData"

// moveStringData moves the values of stringData of a Secret to data, as the API server does after an apply. The API server does not
// record who owns the values that it moves, so a later apply would not remove a key that its manifest no longer contains. If a value has
// the wrong type, the object stays unchanged, and the API server rejects it.
func moveStringData(object *unstructured.Unstructured) {
	if !refOf(object).isSecret() {
		return
	}

	plain, found, err := unstructured.NestedStringMap(object.Object, fieldStringData)
	if !found || err != nil {
		return
	}

	present, ok := object.Object["data"].(map[string]any)
	if !ok && object.Object["data"] != nil {
		return
	}

	data := maps.Clone(present)
	if data == nil {
		data = map[string]any{}
	}

	for key, value := range plain {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}

	object.Object["data"] = data
	delete(object.Object, fieldStringData)
}

// ownsStringData reports whether the last apply of the owner contained stringData, as with earlier releases. Another apply is then
// necessary, even without a difference, so that the owner owns the keys of data.
func (o Owner) ownsStringData(present *unstructured.Unstructured) bool {
	if !refOf(present).isSecret() {
		return false
	}

	entries, _, _ := unstructured.NestedFieldNoCopy(present.Object, "metadata", "managedFields")
	list, _ := entries.([]any)

	for _, each := range list {
		entry, _ := each.(map[string]any)
		fields, _ := entry["fieldsV1"].(map[string]any)

		if _, owns := fields["f:"+fieldStringData]; owns && entry["manager"] == o.manager && entry["operation"] == string(metav1.ManagedFieldsOperationApply) {
			return true
		}
	}

	return false
}

func (r ref) isSecret() bool { return r.Group == "" && r.Kind == "Secret" }
