package gardener_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// events records the names that a watch reports.
type events struct {
	mutex sync.Mutex
	names []string
}

func (l *events) add(name string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	l.names = append(l.names, name)
}

// since waits for all pending events and returns the names reported since its previous call.
func (l *events) since() []string {
	time.Sleep(5 * time.Second) // fake time: longer than the longest pause between two attempts
	synctest.Wait()

	l.mutex.Lock()
	defer l.mutex.Unlock()

	names := slices.Compact(l.names)
	l.names = nil

	return names
}

// watching runs a watch in a synctest bubble. The test function changes Shoots and checks the reported names.
func watching(t *testing.T, funcs func(b fixture) interceptor.Funcs, test func(b fixture, heard *events)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		b, heard := newFixture(t), &events{}
		shoots := b.shoots

		if funcs != nil {
			shoots = b.through(funcs(b))
		}

		b.apply(runtimeID)
		run(t, func(ctx context.Context) error { return shoots.Watch(ctx, heard.add) })
		test(b, heard)
	})
}

func (b fixture) expect(heard *events, reason string, want ...string) {
	b.Helper()

	if diff := cmp.Diff(want, heard.since()); diff != "" {
		b.Errorf("%s: -want +got:\n%s", reason, diff)
	}
}

// touch changes an annotation of the Shoot, which causes a watch event.
func (b fixture) touch() {
	b.Helper()

	if err := b.shoots.Retry(b.Context(), b.get()); err != nil {
		b.Fatal(err)
	}
}

func TestWatchReportsEveryChange(t *testing.T) {
	watching(t, nil, func(b fixture, heard *events) {
		b.expect(heard, "existing Shoots may have changed before the watch", name)
		b.expect(heard, "nothing happened")

		b.touch()
		b.expect(heard, "the Shoot was changed", name)

		b.remove()
		b.expect(heard, "the Shoot is gone", name)
	})
}

func (b fixture) remove() {
	b.Helper()

	if err := b.shoots.Delete(b.Context(), name, runtimeID); err != nil {
		b.Fatal(err)
	}
}

func TestWatchResumesAfterLostConnection(t *testing.T) {
	// One of client-go's default error handlers limits its rate with the real clock, which differs from the clock of the bubble.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil //nolint:reassign // there is no setter

	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers }) //nolint:reassign // as above

	var (
		mutex sync.Mutex
		open  watch.Interface
		away  bool
	)

	away = true // at the start

	interrupted := func(fixture) interceptor.Funcs {
		return interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				mutex.Lock()
				defer mutex.Unlock()

				if away {
					return errors.New("connection refused")
				}

				return c.List(ctx, list, options...)
			},
			Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
				mutex.Lock()
				defer mutex.Unlock()

				if away {
					return nil, errors.New("connection refused")
				}

				var err error
				open, err = c.Watch(ctx, list, options...)

				return open, err
			},
		}
	}

	connect := func(connected bool) {
		mutex.Lock()
		defer mutex.Unlock()

		away = !connected
		if away && open != nil {
			open.Stop()
		}
	}

	watching(t, interrupted, func(b fixture, heard *events) {
		time.Sleep(time.Hour)
		b.expect(heard, "Gardener does not respond yet")

		connect(true)
		b.expect(heard, "existing Shoots are reported once Gardener responds", name)

		connect(false)
		b.touch()
		time.Sleep(time.Hour)
		b.expect(heard, "no event arrives while the connection is lost")

		connect(true)
		b.expect(heard, "a change in between is not missed", name)

		connect(false)
		b.remove()

		b.expect(heard, "no event arrives while the connection is lost")

		connect(true)
		b.expect(heard, "a removal in between is not missed", name)
	})
}

func TestWatchIsLimitedToProject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, heard := newFixture(t), &events{}
		b.apply(runtimeID)

		other := gardener.New(b.garden.Client(), "garden-other")
		run(t, func(ctx context.Context) error { return other.Watch(ctx, heard.add) })

		b.expect(heard, "Shoots of other projects are not reported")
	})
}
