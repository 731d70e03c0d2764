package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// diary records when the parts of a test start and stop.
type diary struct {
	mutex sync.Mutex
	lines []string
}

func (d *diary) write(line string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	d.lines = append(d.lines, line)
}

func (d *diary) read() []string {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	return slices.Clone(d.lines)
}

// part returns a part that takes a second to stop and then returns the error.
func (d *diary) part(name string, err error) lifecycle.Part {
	return lifecycle.Part{Name: name, Run: func(ctx context.Context) error {
		d.write(name + " runs")
		<-ctx.Done()
		d.write(name + " stops")
		time.Sleep(time.Second) // fake time
		d.write(name + " ended")

		return err
	}}
}

// limit bounds the time in which all parts must stop.
const limit = 30 * time.Second

// begin runs the parts in the background. The channel receives the result of Run.
func begin(t *testing.T, parts ...lifecycle.Part) (stop context.CancelFunc, ended <-chan error) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)

	go func() { done <- lifecycle.Run(ctx, logging.Discard(), limit, parts...) }()

	return cancel, done
}

var lastFirst = []string{"c stops", "c ended", "b stops", "b ended", "a stops", "a ended"}

func TestPartsStopInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		stop, ended := begin(t, d.part("a", nil), d.part("b", nil), d.part("c", nil))

		synctest.Wait()

		running := d.read()
		slices.Sort(running)

		if diff := cmp.Diff([]string{"a runs", "b runs", "c runs"}, running); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}

		stop()

		if err := <-ended; err != nil {
			t.Errorf("a requested stop returns %v", err)
		}

		if diff := cmp.Diff(lastFirst, d.read()[3:]); diff != "" {
			t.Errorf("a part stopped before the parts that need it, -want +got:\n%s", diff)
		}
	})
}

func TestStopsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		worker := d.part("worker", nil)
		worker.StopsEarly = true

		stop, ended := begin(t, d.part("needed", nil), worker, d.part("server", nil))

		synctest.Wait()
		stop()

		asked := time.Now()

		if err := <-ended; err != nil {
			t.Errorf("a requested stop returns %v", err)
		}

		if took := time.Since(asked); took != 2*time.Second {
			t.Errorf("the stop took %s, want one second for server and worker together and one for the part that the worker needs", took)
		}

		got := d.read()[3:]
		slices.Sort(got[:4]) // server and worker stop at the same time

		want := []string{"server ended", "server stops", "worker ended", "worker stops", "needed stops", "needed ended"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a part that the worker needs stopped before it, -want +got:\n%s", diff)
		}
	})
}

func TestPartThatEndsStopsTheOthers(t *testing.T) {
	cases := map[string]struct {
		reason   string
		outcome  error
		stopping error
		want     []string
	}{
		"failed":    {"a failed part stops the service with an error", errBroken, nil, []string{"early: broken"}},
		"ended":     {"a part that ends stops the service", nil, nil, nil},
		"both fail": {"all errors are returned", errBroken, errors.New("stuck"), []string{"c: stuck", "b: stuck", "a: stuck", "early: broken"}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &diary{}
				early := lifecycle.Part{Name: "early", Run: func(context.Context) error {
					time.Sleep(time.Minute) // fake time

					return c.outcome
				}}
				_, ended := begin(t, early, d.part("a", c.stopping), d.part("b", c.stopping), d.part("c", c.stopping))

				var got []string
				if err := <-ended; err != nil {
					got = strings.Split(err.Error(), "\n")
				}

				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", c.reason, diff)
				}

				if diff := cmp.Diff(lastFirst, d.read()[3:]); diff != "" {
					t.Errorf("%s: -want +got:\n%s", c.reason, diff)
				}
			})
		})
	}
}

func TestPartThatDoesNotStopIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		stuck := lifecycle.Part{Name: "stuck", Run: func(context.Context) error {
			time.Sleep(time.Hour) // fake time

			return errBroken
		}}
		stop, ended := begin(t, d.part("a", nil), stuck, d.part("c", nil))

		synctest.Wait()

		asked := time.Now()

		stop()

		err := <-ended
		if err == nil || !strings.Contains(err.Error(), "stuck did not stop within 30s, the limit for all parts") {
			t.Errorf("got %v, want an error that names the part", err)
		}

		if took := time.Since(asked); took != limit+time.Second {
			t.Errorf("the stop took %s, want the limit, which the stuck part uses up, and one second for the remaining part", took)
		}

		if diff := cmp.Diff([]string{"c stops", "c ended", "a stops", "a ended"}, d.read()[2:]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}

		time.Sleep(time.Hour) // fake time, in which the abandoned part ends, as synctest requires
	})
}

func TestPartsGetContextValues(t *testing.T) {
	type key struct{}

	var got any

	ctx := context.WithValue(t.Context(), key{}, "trace")
	err := lifecycle.Run(ctx, logging.Discard(), limit, lifecycle.Part{Name: "only", Run: func(ctx context.Context) error {
		got = ctx.Value(key{})

		return nil
	}})

	if got != "trace" || err != nil {
		t.Errorf("the part got %v, Run returned %v", got, err)
	}
}

func TestMainExitCode(t *testing.T) {
	cases := map[string]struct {
		reason   string
		program  func(context.Context) error
		want     int
		wantText string
	}{
		"done":   {"no error, no output", func(context.Context) error { return nil }, 0, ""},
		"failed": {"the error is written", func(context.Context) error { return errBroken }, 1, "broken\n"},
		"stopped": {
			"a stop by a signal is a success",
			func(ctx context.Context) error {
				if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
					return err
				}

				<-ctx.Done()

				return nil
			}, 0, "",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var output bytes.Buffer

			if got := lifecycle.Main(c.program, &output); got != c.want || output.String() != c.wantText {
				t.Errorf("%s: got %d and %q, want %d and %q", c.reason, got, output.String(), c.want, c.wantText)
			}
		})
	}
}
