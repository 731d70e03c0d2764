package store

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watcher is one watch. Changes are queued without bound, so that a slow reader holds up nobody.
type watcher struct {
	filter      filter
	unsubscribe func()
	results     chan watch.Event
	wake        chan struct{}
	stopped     chan struct{}
	stop        sync.Once

	mu     sync.Mutex
	queued []watch.Event
}

func newWatcher(filter filter) *watcher {
	return &watcher{
		filter:  filter,
		results: make(chan watch.Event),
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
}

// ResultChan implements watch.Interface. It is closed after Stop.
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	w.stop.Do(func() {
		w.unsubscribe()
		close(w.stopped)
	})
}

// offer queues a change if the watch is about it.
func (w *watcher) offer(change change) {
	kind, object, ok := w.filter.event(change)
	if !ok {
		return
	}
	copied, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return
	}
	copied.SetManagedFields(nil)
	if change.version > 0 {
		copied.SetResourceVersion(strconv.FormatUint(change.version, 10))
	}
	w.enqueue(watch.Event{Type: kind, Object: copied})
}

func (w *watcher) enqueue(event watch.Event) {
	w.mu.Lock()
	w.queued = append(w.queued, event)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// deliver hands on what is queued until the watch is stopped.
func (w *watcher) deliver() {
	defer close(w.results)
	for {
		w.mu.Lock()
		events := w.queued
		w.queued = nil
		w.mu.Unlock()
		for _, event := range events {
			select {
			case w.results <- event:
			case <-w.stopped:
				return
			}
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-w.wake:
		case <-w.stopped:
			return
		}
	}
}
