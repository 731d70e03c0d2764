// Package ownwrites lets controllers detect that their cache has not received their last write yet, and retry reconciliations that failed
// for this reason.
//
// A reconciliation that reads an older state would repeat work, compute an outdated status, and fail with a conflict when it
// writes this status.
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
	// Pause is the time after which a controller reads its cache again if a write is missing from the cache.
	Pause = 50 * time.Millisecond
	// conflictPause is the time after which a reconciliation that failed with a conflict is retried.
	conflictPause = time.Second
	// maxDelay is the time after which a cache is used even if a write seems to be missing from it. A cluster that was restored from
	// a backup has lower resource versions than before, so the write would seem to be missing forever.
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

// Record records a write. written is the object that the API server returned for the write.
func (w *Writes) Record(written client.Object) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	if w.last == nil {
		w.last = map[string]write{}
	}

	w.last[written.GetName()] = write{version(written), time.Now()}
}

// Missing reports whether a cached object is older than the last recorded write. It returns false once the write is older than
// maxDelay.
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

// Retry returns the result for a reconciliation that failed with an error. A conflict means that the cache is outdated, for
// example because the response to a write was lost. After a conflict, the pause is fixed. If it doubled instead, a few conflicts
// in a row while the watch is being restored would stop the work for minutes.
func Retry(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}

	return reconcile.Result{}, err
}

// version returns the resource version of an object as a number. Kubernetes guarantees that the versions of objects of the same
// kind can be compared.
func version(object client.Object) uint64 {
	number, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)

	return number
}
