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

// told are the names that a watch told.
type told struct {
	mutex sync.Mutex
	names []string
}

func (l *told) tell(name string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	l.names = append(l.names, name)
}

// since returns what was told since it was last asked, once nothing more is under way.
func (l *told) since() []string {
	time.Sleep(5 * time.Second) // fake time: longer than any pause between two tries, however long Gardener was away
	synctest.Wait()

	l.mutex.Lock()
	defer l.mutex.Unlock()

	names := slices.Compact(l.names)
	l.names = nil

	return names
}

// watching runs a watch in a bubble; the test changes Shoots and looks what is told.
func watching(t *testing.T, funcs func(b bench) interceptor.Funcs, test func(b bench, told *told)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		b, heard := newBench(t), &told{}
		shoots := b.shoots

		if funcs != nil {
			shoots = b.through(funcs(b))
		}

		b.apply(runtimeID)
		run(t, func(ctx context.Context) error { return shoots.Watch(ctx, heard.tell) })
		test(b, heard)
	})
}

func (b bench) expect(heard *told, reason string, want ...string) {
	b.Helper()

	if diff := cmp.Diff(want, heard.since()); diff != "" {
		b.Errorf("%s: -want +got:\n%s", reason, diff)
	}
}

// touch changes the Shoot.
func (b bench) touch() {
	b.Helper()

	if err := b.shoots.Retry(b.Context(), b.get()); err != nil {
		b.Fatal(err)
	}
}

func TestWatchTellsEveryChange(t *testing.T) {
	watching(t, nil, func(b bench, heard *told) {
		b.expect(heard, "what is there when the watch begins may have changed before", name)
		b.expect(heard, "nothing happened")

		b.touch()
		b.expect(heard, "the Shoot was changed", name)

		b.remove()
		b.expect(heard, "the Shoot is gone", name)
	})
}

// remove deletes the Shoot.
func (b bench) remove() {
	b.Helper()

	if err := b.shoots.Delete(b.Context(), name, runtimeID); err != nil {
		b.Fatal(err)
	}
}

func TestWatchGoesOnAfterALostConnection(t *testing.T) {
	// One of them spaces errors out by the time of the process, which is far from the time of a bubble.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil //nolint:reassign // there is no other way to them

	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers }) //nolint:reassign // as above

	var (
		mutex sync.Mutex
		open  watch.Interface
		away  bool
	)

	away = true // at the start

	interrupted := func(bench) interceptor.Funcs {
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

	watching(t, interrupted, func(b bench, heard *told) {
		time.Sleep(time.Hour)
		b.expect(heard, "Gardener does not answer yet")

		connect(true)
		b.expect(heard, "what was there before is told once it answers", name)

		connect(false)
		b.touch()
		time.Sleep(time.Hour)
		b.expect(heard, "nothing is heard while the connection is lost")

		connect(true)
		b.expect(heard, "a change in between is not missed", name)

		connect(false)
		b.remove()

		b.expect(heard, "nothing is heard while the connection is lost")

		connect(true)
		b.expect(heard, "a removal in between is not missed", name)
	})
}

func TestWatchIsOfOneProject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, heard := newBench(t), &told{}
		b.apply(runtimeID)

		other := gardener.New(b.garden.Client(), "garden-other")
		run(t, func(ctx context.Context) error { return other.Watch(ctx, heard.tell) })

		b.expect(heard, "the Shoots of other projects are none of ours")
	})
}
