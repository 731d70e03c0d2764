package crashtest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/process"
)

// latency is the duration of a call to an upstream. It is long enough that some leases are renewed during a call.
const latency = 970 * time.Millisecond

// Proxy connects a replica to its store and to upstreams, and injects the faults. The replica has no other connection. After
// the replica has died, every call fails.
type Proxy struct {
	faults *faults
	// kill ends the context of the replica's engine.
	kill context.CancelFunc

	mutex sync.Mutex
	dead  bool
	// thaws is the time at which the frozen replica continues. It is zero if the replica was never frozen.
	thaws time.Time
}

// Call calls an upstream. Faults can affect the request or the response. The name identifies the kind of call, such as
// "OrderRuntime". Fault points are counted separately for each name.
func (p *Proxy) Call(ctx context.Context, name string, call func(ctx context.Context) error) error {
	return p.forward(ctx, name, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(latency):
		}

		if err := p.checkAlive(); err != nil {
			return err
		}

		return call(ctx)
	})
}

// Client returns an HTTP client that sends its requests to the handler. Each request is one Call, whose name is the result of the
// name function.
func (p *Proxy) Client(handler http.Handler, name func(*http.Request) string) *http.Client {
	return &http.Client{Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()

		err := p.Call(request.Context(), name(request), func(ctx context.Context) error {
			handler.ServeHTTP(recorder, request.WithContext(ctx))

			return nil
		})
		if err != nil {
			return nil, err
		}

		return recorder.Result(), nil
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// forward makes a call, and injects a fault if one is planned. The call of a frozen replica arrives late, even if its context
// has ended, because the request may have left the machine before the freeze.
func (p *Proxy) forward(ctx context.Context, name string, call func(ctx context.Context) error) error {
	start := time.Now()

	if err := p.checkAlive(); err != nil {
		return err
	}

	mode := p.faults.next(name, DiesBefore, DiesAfter, AnswerLost, Unsent, Freezes)

	switch mode {
	case DiesBefore:
		p.die()
	case Freezes:
		p.freeze(freezeTime)
	case Unsent:
		return ErrLost
	default:
	}

	if err := p.checkAlive(); err != nil {
		return err
	}

	if time.Since(start) > 0 {
		ctx = context.WithoutCancel(ctx)
	}

	return p.respond(mode, call(ctx))
}

// respond returns the result of a call to the caller, unless the fault affects the response.
func (p *Proxy) respond(mode Mode, err error) error {
	switch mode {
	case DiesAfter:
		p.die()
	case AnswerLost:
		return ErrLost
	default:
	}

	if dead := p.checkAlive(); dead != nil {
		return dead
	}

	return err
}

// checkAlive returns an error if the replica is dead. It blocks while the replica is frozen.
func (p *Proxy) checkAlive() error {
	for {
		p.mutex.Lock()
		dead, rest := p.dead, time.Until(p.thaws)
		p.mutex.Unlock()

		if dead {
			return errDead
		}

		if rest <= 0 {
			return nil
		}

		time.Sleep(rest)
	}
}

// freeze delays all calls of the replica, as if its process were stopped while its leases expire.
func (p *Proxy) freeze(pause time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.thaws = time.Now().Add(pause)
}

// die makes all further calls of the replica fail and ends its engine, as a crash would.
func (p *Proxy) die() {
	p.mutex.Lock()
	p.dead = true
	p.mutex.Unlock()

	p.kill()
}

// running reports whether the replica is neither dead nor frozen.
func (p *Proxy) running() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	return !p.dead && time.Until(p.thaws) <= 0
}

// Transparent returns a proxy without faults, for the clients of a scenario.
func Transparent() *Proxy { return &Proxy{faults: newFaults(nil), kill: func() {}} }

// store is the engine's store as seen through a replica's proxy. It reports claims and writes to the monitor. Reads need no
// fault points.
type store struct {
	process.Store

	proxy   *Proxy
	monitor *monitor
}

// Due implements process.Store. Because Due only reads, a crash here is equivalent to a crash before the claim.
func (s store) Due(ctx context.Context, kinds []string, now time.Time) ([]process.Due, error) {
	if err := s.proxy.checkAlive(); err != nil {
		return nil, err
	}

	return s.Store.Due(ctx, kinds, now)
}

// Claim implements process.Store. It has fault points only after a claim that returns work, because a crash before a claim is
// equivalent to a crash after the preceding write.
func (s store) Claim(ctx context.Context, claim process.Claim) ([]process.Claimed, error) {
	if err := s.proxy.checkAlive(); err != nil {
		return nil, err
	}

	claimed, err := s.Store.Claim(ctx, claim)
	if err != nil || len(claimed) == 0 {
		return claimed, err
	}

	s.monitor.claimed(s.proxy, claimed)

	// Fake time stands still while an operation is handed back and claimed again, for example by a replica that was frozen. Without a
	// pause, a step that runs again would have the same entry in the timeline, which Gaps reports as a duplicate.
	time.Sleep(time.Millisecond)

	mode := s.proxy.faults.next("Claim", DiesAfter, AnswerLost, Freezes)
	if mode == Freezes {
		s.proxy.freeze(freezeTime)
	}

	if err := s.proxy.respond(mode, nil); err != nil {
		return nil, err
	}

	return claimed, nil
}

// Renew implements process.Store.
func (s store) Renew(ctx context.Context, renewal process.Renewal) (map[string]process.State, error) {
	var states map[string]process.State

	err := s.proxy.forward(ctx, "Renew", func(ctx context.Context) error {
		var err error

		states, err = s.Store.Renew(ctx, renewal)

		return err
	})

	return states, err
}

// Save implements process.Store.
func (s store) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	var state process.State

	err := s.proxy.forward(ctx, "Save", func(ctx context.Context) error {
		var err error

		state, err = s.Store.Save(ctx, progress)
		if err == nil {
			s.monitor.saved(s.proxy, progress)
		}

		return err
	})

	return state, err
}
