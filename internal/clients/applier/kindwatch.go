package applier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// watchTime is the maximum duration of a watch. The API server ends each watch after a random time between half of watchTime and
	// watchTime, and the next one begins. If a watch does not end by then, the client ends it after a further watchGrace.
	watchTime  = 8 * time.Minute
	watchGrace = time.Minute
	// listTimeout limits the duration of a list, including all its pages. watchPage is the maximum number of objects in a page.
	listTimeout = time.Minute
	watchPage   = 500
	// After a failed list or watch, the next list starts after a pause. The pause starts with firstPause and doubles with each
	// failure, up to refusedPause for errors that refused matches, and up to lastPause for others. A watch that lasts longer than
	// settled does not count as a failure.
	firstPause   = time.Second
	lastPause    = 30 * time.Second
	refusedPause = 5 * time.Minute
	settled      = 30 * time.Second
	// maxWatched is the maximum number of objects that are watched on a cluster.
	maxWatched = 50_000
)

var (
	errTooMany = fmt.Errorf("the cluster has more than %d objects from BundleDeployments", maxWatched)
	errExpired = errors.New("the resource version is too old")
)

// kindWatch watches those objects of one kind that BundleDeployments have installed on a cluster. It does not keep the objects,
// only a record of each.
type kindWatch struct {
	cluster *Cluster
	kind    ref // without namespace and name
	// total counts the records of all kinds that are watched on the cluster.
	total *atomic.Int64
	// changed is called with the names of BundleDeployments whose objects have changed. state is called when the records become
	// valid or invalid.
	changed func(owners ...string)
	state   func()
	stop    context.CancelFunc

	mutex sync.Mutex
	// synced reports whether the records are valid. known reports whether setSynced has been called.
	synced  bool
	known   bool
	version uint64
	records map[client.ObjectKey]record
}

// record is the known state of an object on the cluster.
type record struct {
	owner   string
	version uint64
	digest  string
	// problem describes why the object is not healthy. It is empty if the object is healthy.
	problem string
}

// run lists and watches the objects until the context ends. After a failure it pauses and starts again.
func (k *kindWatch) run(ctx context.Context) {
	defer func() { k.total.Add(-int64(len(k.records))) }()

	for failures := 0; ctx.Err() == nil; {
		version, err := k.list(ctx)
		listed := err == nil

		if listed {
			began := time.Now()
			err = k.watch(ctx, version)

			if errors.Is(err, errExpired) || time.Since(began) > settled {
				failures = 0

				continue
			}
		}

		// A watch that is refused leaves the records outdated for minutes. Other failures pass within seconds, or let the next list fail.
		if ctx.Err() == nil && (!listed || refused(err)) {
			k.setSynced(false)
		}

		pause := min(firstPause<<min(failures, 10), lastPause) //nolint:mnd // far beyond all limits
		if refused(err) {
			pause = min(firstPause<<min(failures, 10), refusedPause) //nolint:mnd // as above
		}

		failures++

		select {
		case <-time.After(wait.Jitter(pause/2, 1)):
		case <-ctx.Done():
		}
	}
}

// refused reports whether retries will keep failing until somebody changes the cluster or the limits.
func refused(err error) bool {
	return errors.Is(err, errTooMany) || meta.IsNoMatchError(err) || err != nil && !unreachable(err)
}

// setSynced records whether the records are valid. It calls state the first time, and whenever the value changes.
func (k *kindWatch) setSynced(synced bool) {
	k.mutex.Lock()
	first := !k.known || k.synced != synced
	k.synced, k.known = synced, true
	k.mutex.Unlock()

	if first {
		k.state()
	}
}

// list reads all objects and replaces the records. It returns the resource version from which a watch continues.
func (k *kindWatch) list(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()

	records := map[client.ObjectKey]record{}

	for next := ""; ; {
		page := k.newList()
		if err := k.cluster.client.List(ctx, page, ownedByAny(), client.Limit(watchPage), client.Continue(next)); err != nil {
			return "", err
		}

		err := meta.EachListItem(page, func(object runtime.Object) error {
			found, key := k.recordOf(object)
			records[key] = found

			return nil
		})
		if err != nil {
			return "", fmt.Errorf("reading a list: %w", err)
		}

		if len(records) > maxWatched {
			return "", errTooMany
		}

		if next = page.GetContinue(); next == "" {
			version = page.GetResourceVersion()

			break
		}
	}

	return version, k.replace(records, number(version))
}

// replace replaces all records, and calls changed with the owners of the objects whose records differ.
func (k *kindWatch) replace(records map[client.ObjectKey]record, version uint64) error {
	k.mutex.Lock()

	if more := int64(len(records) - len(k.records)); k.total.Add(more) > maxWatched {
		k.total.Add(-more)
		k.mutex.Unlock()

		return errTooMany
	}

	before := k.records
	k.records, k.version = records, version
	k.mutex.Unlock()

	var owners []string

	for key, found := range records {
		if found.differs(before[key]) {
			owners = append(owners, found.owner)
		}
	}

	for key, former := range before {
		if records[key].owner != former.owner {
			owners = append(owners, former.owner)
		}
	}

	k.changed(owners...)

	return nil
}

// watch follows changes until the context ends or a watch fails. After an error, the objects must be listed again.
func (k *kindWatch) watch(ctx context.Context, version string) error {
	for {
		next, err := k.watchOnce(ctx, version)
		if err != nil || ctx.Err() != nil {
			return err
		}

		version = next
	}
}

// watchOnce follows changes until the API server ends the watch, and returns the resource version from which the next watch continues. The
// records are valid as soon as the watch begins.
func (k *kindWatch) watchOnce(ctx context.Context, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, watchTime+watchGrace)
	defer cancel()

	began, seconds := time.Now(), int64(wait.Jitter(watchTime/2, 1).Seconds())

	watched, err := k.cluster.watching.Watch(ctx, k.newList(), ownedByAny(), &client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	}})
	if err != nil {
		return "", err
	}
	defer watched.Stop()

	k.setSynced(true)

	for event := range watched.ResultChan() {
		if event.Type == watch.Error {
			err := apierrors.FromObject(event.Object)
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return "", errExpired
			}

			return "", err
		}

		object, err := meta.Accessor(event.Object)
		if err != nil {
			return "", fmt.Errorf("reading an event: %w", err)
		}

		version = object.GetResourceVersion()

		if err := k.observe(event, number(version)); err != nil {
			return "", err
		}
	}

	if time.Since(began) < firstPause {
		return "", errors.New("the watch ended immediately")
	}

	return version, nil
}

// observe updates the records for an event, and calls changed if the change is relevant.
func (k *kindWatch) observe(event watch.Event, version uint64) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()

	k.version = version
	if event.Type == watch.Bookmark {
		return nil
	}

	found, key := k.recordOf(event.Object)
	before, known := k.records[key]

	if event.Type == watch.Deleted {
		if known {
			delete(k.records, key)
			k.total.Add(-1)
		}

		k.changed(found.owner, before.owner)

		return nil
	}

	if !known && k.total.Add(1) > maxWatched {
		k.total.Add(-1)

		return errTooMany
	}

	k.records[key] = found

	if found.differs(before) {
		k.changed(found.owner)
	}

	if before.owner != found.owner {
		k.changed(before.owner)
	}

	return nil
}

// differs reports whether the change from before to r is relevant to the owner of the object.
func (r record) differs(before record) bool {
	return r.owner != before.owner || r.digest != before.digest || r.problem != before.problem || r.digest == "" && r.version != before.version
}

func (k *kindWatch) recordOf(object runtime.Object) (record, client.ObjectKey) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return record{}, client.ObjectKey{} // cannot happen: lists and watches decode objects
	}

	found := record{owner: accessor.GetLabels()[LabelOwnerName], version: number(accessor.GetResourceVersion())}

	if full, ok := object.(*unstructured.Unstructured); ok {
		full.SetGroupVersionKind(k.kind.kind()) // items of a list may lack it
		found.digest, found.problem = digestOf(full), problemOf(refOf(full), full)
	}

	return found, client.ObjectKey{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}
}

// newList returns an empty list. For kinds that are ready as soon as they exist, the list contains only metadata.
func (k *kindWatch) newList() client.ObjectList {
	kind := k.kind.kind()
	kind.Kind += "List"

	if k.kind.readyByExistence() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)

		return list
	}

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)

	return list
}

// problemOf describes why an object is not healthy, or returns "" if it is healthy.
func problemOf(ref ref, object *unstructured.Unstructured) string {
	found, err := status.Compute(object)

	switch {
	case err != nil:
		return ref.String() + " has an invalid status: " + err.Error()
	case found.Status != status.CurrentStatus:
		return ref.String() + ": " + found.Message
	default:
		return ""
	}
}

// ownedByAny selects the objects of all BundleDeployments.
func ownedByAny() client.MatchingLabels {
	return client.MatchingLabels{LabelOwnerKind: kindBundleDeployment}
}
