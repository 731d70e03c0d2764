// Package ownwrites lets controllers detect that their cache has not received their last write yet, and retry passes that failed because of that.
//
// A pass over an older state would repeat work, compute another status, and fail with a conflict when it writes that.
package ownwrites

import (
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// Pause is the time after which a controller looks at the cache again.
	Pause = 50 * time.Millisecond
	// conflictPause is the time after which a pass that has failed with a conflict is repeated.
	conflictPause = time.Second
	// maxDelay is the time after which a cache is used even if it seems to lack a write. In a cluster that was restored from a backup,
	// resource versions are lower than before.
	maxDelay = 10 * time.Second
)

// Writes records the last write of a controller to each object of a cluster-scoped kind. The zero value is empty. It is safe for
// concurrent use.
type Writes struct {
	mutex sync.Mutex
	last  map[string]write
}

type write struct {
	version uint64
	at      time.Time
}

// Record records the response to a write.
func (w *Writes) Record(written client.Object) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	if w.last == nil {
		w.last = map[string]write{}
	}

	w.last[written.GetName()] = write{version(written), time.Now()}
}

// Missing reports whether an object is older than the last recorded write.
func (w *Writes) Missing(cached client.Object) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	last := w.last[cached.GetName()]

	return version(cached) < last.version && time.Since(last.at) < maxDelay
}

// Forget drops the record of an object that no longer exists.
func (w *Writes) Forget(name string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	delete(w.last, name)
}

// Retry returns the result of a pass that has failed with an error. A conflict means that the cache is behind; this is also the case if
// the response to a write was lost. After a conflict, the pause is fixed. A pause that doubles would stop the work for minutes after a
// few conflicts in a row while the watch resumes.
func Retry(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}

	return reconcile.Result{}, err
}

// version returns the resource version as a number. Kubernetes guarantees that the versions of objects of one kind can be compared.
func version(object client.Object) uint64 {
	number, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)

	return number
}
