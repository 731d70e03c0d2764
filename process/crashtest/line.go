package crashtest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// latency is how long a call to the outside is under way: long enough that some leases are renewed meanwhile.
const latency = 970 * time.Millisecond

// Line is the only way of a replica to its store and to the outside. When the replica dies, nothing gets through any more.
type Line struct {
	faults *faults
	kill   context.CancelFunc

	mutex sync.Mutex
	dead  bool
	thaws time.Time
}

// Outside makes a call to the outside. It may go wrong before it arrives or on its way back.
func (l *Line) Outside(ctx context.Context, name string, call func(ctx context.Context) error) error {
	return l.pass(ctx, name, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(latency):
		}

		if err := l.stand(); err != nil {
			return err
		}

		return call(ctx)
	})
}

// Client returns a client whose requests the handler answers, each of them a call to the outside with that name.
func (l *Line) Client(handler http.Handler, name func(*http.Request) string) *http.Client {
	return &http.Client{Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		answer := httptest.NewRecorder()

		err := l.Outside(request.Context(), name(request), func(ctx context.Context) error {
			handler.ServeHTTP(answer, request.WithContext(ctx))

			return nil
		})
		if err != nil {
			return nil, err
		}

		return answer.Result(), nil
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// pass makes a call that may go wrong in every way. A frozen replica's call arrives late, whatever its caller thinks by then.
func (l *Line) pass(ctx context.Context, name string, call func(ctx context.Context) error) error {
	asked := time.Now()

	if err := l.stand(); err != nil {
		return err
	}

	mode := l.faults.next(name, DiesBefore, DiesAfter, AnswerLost, Unsent, Freezes)

	switch mode {
	case DiesBefore:
		l.die()
	case Freezes:
		l.stop(freeze)
	case Unsent:
		return ErrLost
	default:
	}

	if err := l.stand(); err != nil {
		return err
	}

	if time.Since(asked) > 0 {
		ctx = context.WithoutCancel(ctx)
	}

	return l.back(mode, call(ctx))
}

// back is how an answer gets to its caller.
func (l *Line) back(mode Mode, err error) error {
	switch mode {
	case DiesAfter:
		l.die()
	case AnswerLost:
		return ErrLost
	default:
	}

	if dead := l.stand(); dead != nil {
		return dead
	}

	return err
}

// stand returns an error when the replica is dead, and only after it was thawed when it is frozen.
func (l *Line) stand() error {
	for {
		l.mutex.Lock()
		dead, rest := l.dead, time.Until(l.thaws)
		l.mutex.Unlock()

		if dead {
			return errDead
		}

		if rest <= 0 {
			return nil
		}

		time.Sleep(rest)
	}
}

func (l *Line) stop(pause time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	l.thaws = time.Now().Add(pause)
}

func (l *Line) die() {
	l.mutex.Lock()
	l.dead = true
	l.mutex.Unlock()

	l.kill()
}

// works reports whether the replica neither died nor is frozen.
func (l *Line) works() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	return !l.dead && time.Until(l.thaws) <= 0
}

// Undisturbed returns a line on which nothing ever goes wrong, for the other side of a story.
func Undisturbed() *Line { return &Line{faults: newFaults(nil), kill: func() {}} }
