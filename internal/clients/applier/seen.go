package applier

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object is the state of an installed object at the time when it was last compared or applied.
type Object struct {
	ref ref
	// version is the resource version as a number. It grows with each write, and is 0 if it is unknown.
	version uint64
	// digest is a digest of the compared fields. It is empty for kinds of which only the metadata is watched. For these kinds,
	// each write counts as a change.
	digest string
	// problem describes why the object was not healthy at that time.
	problem string
}

// Problems describes the installed objects that were not healthy when Apply compared or applied them. known is false if Apply has not
// read one of the objects, for example a namespace that an earlier call created.
func (p Progress) Problems() (problems []string, known bool) {
	for _, object := range p.Objects {
		if object.version == 0 {
			return nil, false
		}

		if object.problem != "" {
			problems = append(problems, object.problem)
		}
	}

	return problems, len(p.Objects) > 0
}

// see records the state of an object that has the wanted content.
func (w *work) see(object *unstructured.Unstructured) {
	w.seenMutex.Lock()
	defer w.seenMutex.Unlock()

	if w.seen == nil {
		w.seen = map[ref]Object{}
	}

	found := refOf(object)
	w.seen[found] = Object{found, number(object.GetResourceVersion()), digestOf(object), problemOf(found, object)}
}

// objects returns all objects in the inventory. For an object that this call has neither compared nor applied, only the
// reference is set.
func (w *work) objects() (objects []Object) {
	for _, entry := range w.inventory.Entries {
		for _, ref := range entry.Objects {
			object := w.seen[ref]
			object.ref = ref
			objects = append(objects, object)
		}
	}

	return objects
}

// digestOf returns a digest of the relevant fields of an object, or "" for kinds of which only the metadata is watched.
func digestOf(object *unstructured.Unstructured) string {
	if refOf(object).readyByExistence() {
		return ""
	}

	text, err := json.Marshal(relevant(object))
	if err != nil {
		return err.Error() // cannot happen: the object was decoded from JSON
	}

	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:8])
}

// number returns a resource version as a number, or 0 if it is not a number. Kubernetes guarantees that resource versions of a kind can
// be compared.
func number(resourceVersion string) uint64 {
	version, _ := strconv.ParseUint(resourceVersion, 10, 64)

	return version
}
