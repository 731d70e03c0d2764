package process

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
)

// Config bounds the engine of one replica.
type Config struct {
	// Workers is how many operations run at the same time. With 0 the replica carries none.
	Workers int
	// Limits bounds how many of a kind run at the same time. Kinds that it does not name are bounded by Workers.
	Limits map[string]int
	// Lease is how long a replica that stopped renewing keeps its operations. It is renewed three times as often.
	Lease time.Duration
	// Poll is how often due operations and expired leases are looked for when nothing wakes the engine.
	Poll time.Duration
	// PendingLimit is how long an operation may wait for its turn; then it fails.
	PendingLimit time.Duration
	// CreatedAfter, if set, leaves operations alone that were accepted before it.
	CreatedAfter time.Time
	// Component is the service, in problems that do not say in which system they arose.
	Component string
	// Grace is how long running steps may go on after the engine was told to stop.
	Grace time.Duration
	// Observer is told what the engine does; nil for nobody.
	Observer Observer
	// Tracer follows operations across systems; nil for nobody.
	Tracer Tracer
}

// DefaultConfig has the values that the services start from.
func DefaultConfig() Config {
	const (
		workers      = 60
		lease        = 6 * time.Second
		pendingLimit = 48 * time.Hour
		grace        = 15 * time.Second
	)

	return Config{Workers: workers, Lease: lease, Poll: time.Second, PendingLimit: pendingLimit, Grace: grace}
}

// renewals is how many times a lease is renewed while it lasts.
const renewals = 3

// Engine claims operations and carries them. All engines on one store share the work.
type Engine[D any] struct {
	store     Store
	processes map[string]Process[D]
	kinds     []string
	asks      []Due
	away      backoff
	config    Config
	clock     clock.WithTicker
	log       logrus.FieldLogger
	owner     string
	wake      chan struct{}

	stopping <-chan struct{} // closed when what is held is to be handed back before its next step
	running  sync.WaitGroup
	mutex    sync.Mutex
	held     map[string]*lease
}

// lease is an operation that a worker of this replica carries.
type lease struct {
	Held

	kind      string
	cancel    context.CancelFunc // stops the run when the lease is lost, or the time of its operation is over
	ends      time.Time          // the limit of the operation
	told      time.Time          // begin of the step that the store was told of
	canceling bool               // the operation is to be canceled at its next safe point
}

// NewEngine checks the processes and returns an engine that is not yet running.
func NewEngine[D any](store Store, config Config, clock clock.WithTicker, log logrus.FieldLogger, processes ...Process[D],
) (*Engine[D], error) {
	if config.Workers < 0 || config.Lease <= 0 || config.Poll <= 0 || config.PendingLimit <= 0 {
		return nil, fmt.Errorf("engine configuration %+v: durations have to be positive, workers not negative", config)
	}

	if config.Observer == nil {
		config.Observer = unobserved{}
	}

	if config.Tracer == nil {
		config.Tracer = untraced{}
	}

	engine := &Engine[D]{
		store:     store,
		processes: map[string]Process[D]{},
		config:    config,
		clock:     clock,
		log:       log,
		owner:     uuid.NewString(),
		wake:      make(chan struct{}, 1),
		held:      map[string]*lease{},
		away:      newBackoff(config.Poll),
	}

	for _, process := range processes {
		if err := process.Validate(); err != nil {
			return nil, err
		}

		if _, twice := engine.processes[process.Kind]; twice {
			return nil, fmt.Errorf("process %q is registered twice", process.Kind)
		}

		engine.processes[process.Kind] = process
		engine.kinds = append(engine.kinds, process.Kind)
		engine.asks = append(engine.asks, Due{Kind: process.Kind}, Due{Kind: process.Kind, Pending: true})
	}

	if len(engine.kinds) == 0 {
		return nil, errors.New("an engine needs at least one process")
	}

	for kind, limit := range config.Limits {
		if !engine.Handles(kind) || limit < 1 {
			return nil, fmt.Errorf("limit %d for operations of kind %q: it has to be positive, and the kind one of %s",
				limit, kind, strings.Join(engine.kinds, ", "))
		}
	}

	return engine, nil
}

// Handles reports whether a process is registered for the kind. An operation of another kind is never accepted.
func (e *Engine[D]) Handles(kind string) bool {
	_, known := e.processes[kind]

	return known
}

// Wake has the engine look for due operations now. It never blocks.
func (e *Engine[D]) Wake() {
	select {
	case e.wake <- struct{}{}:
	default: // a wake-up is under way already
	}
}

// Run claims and carries operations until the context ends. Then it claims no more, lets running steps finish for the grace
// period, and hands back what is left.
func (e *Engine[D]) Run(ctx context.Context) error {
	kinds, err := e.unfinishedKinds(ctx)
	if err != nil {
		return nil // it was told to stop before it began
	}

	if err := e.checkKinds(kinds); err != nil {
		return err
	}

	runs, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	e.stopping = ctx.Done()

	var beside sync.WaitGroup

	beside.Go(func() { e.renewLeases(runs) })
	beside.Go(func() { e.expirePending(ctx) })

	beside.Go(func() { e.interruptLate(runs, stop) })

	e.dispatch(ctx, runs)
	e.running.Wait()
	stop()
	beside.Wait()

	return nil
}

// unfinishedKinds asks until the store answers or the context ends: a replica that has just begun outlives its database as any other does.
func (e *Engine[D]) unfinishedKinds(ctx context.Context) ([]string, error) {
	for {
		kinds, err := e.store.UnfinishedKinds(ctx)
		if err == nil {
			e.away.succeeded()

			return kinds, nil
		}

		if ctx.Err() != nil {
			return nil, ctx.Err()
		}

		e.log.WithError(err).Warn("the kinds of unfinished operations could not be read")
		e.away.failed()

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-e.clock.After(e.away.pause()):
		}
	}
}

// checkKinds refuses to start beside operations that nobody would ever carry.
func (e *Engine[D]) checkKinds(unfinished []string) error {
	for _, kind := range unfinished {
		if !e.Handles(kind) {
			return fmt.Errorf("there are unfinished operations of kind %q, for which no process is registered", kind)
		}
	}

	return nil
}

// dispatch claims work whenever there is a free worker and a reason to look.
func (e *Engine[D]) dispatch(ctx, runs context.Context) {
	poll := e.clock.NewTicker(e.config.Poll)
	defer poll.Stop()

	for ctx.Err() == nil {
		if claimed := e.claim(ctx, runs); claimed {
			continue // there may be more
		}

		// While the store does not answer, nothing that wakes the engine is a reason to ask.
		if pause := e.away.pause(); pause > 0 {
			select {
			case <-ctx.Done():
			case <-e.clock.After(pause):
			}

			continue
		}

		select {
		case <-ctx.Done():
		case <-e.wake:
		case <-poll.C():
		}
	}
}

// start carries a claimed operation in a worker of its own.
func (e *Engine[D]) start(runs context.Context, work Claimed) {
	ctx, cancel := context.WithCancel(runs)
	held := &lease{
		Held:      Held{OperationID: work.Record.ID, Fence: work.Record.Lease.Fence},
		kind:      work.Record.Kind,
		cancel:    cancel,
		ends:      work.Record.StartedAt.Add(e.processes[work.Record.Kind].Limit),
		canceling: work.Record.State == Canceling,
	}

	e.mutex.Lock()
	if former, still := e.held[work.Record.ID]; still {
		former.cancel() // this replica has lost that lease to itself
	}

	e.held[work.Record.ID] = held
	e.mutex.Unlock()

	e.config.Observer.Began(work.Record.Kind)

	if work.TakenFrom == "" {
		e.config.Observer.PickedUp(work.Record.Kind, max(0, e.clock.Since(work.Record.NextRun)))
	}

	e.running.Go(func() {
		defer cancel()

		e.newRun(work, held).carry(ctx)
		e.config.Observer.Left(work.Record.Kind)

		e.release(held)
		e.Wake() // a worker is free, and the next operation of the instance may be due
	})
}

// release forgets a run that has ended. A newer run of the same operation stays.
func (e *Engine[D]) release(ended *lease) {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	if e.held[ended.OperationID] == ended {
		delete(e.held, ended.OperationID)
	}
}

// interruptLate interrupts the steps that still run after the grace period. It counts from when the engine was told to stop: a claim that is
// then under way may take a while to come to its end.
func (e *Engine[D]) interruptLate(runs context.Context, stop context.CancelFunc) {
	<-e.stopping

	select {
	case <-runs.Done():
	case <-e.clock.After(e.config.Grace):
		stop()
	}
}

// isStopping reports whether the engine was told to stop.
func (e *Engine[D]) isStopping() bool {
	select {
	case <-e.stopping:
		return true
	default:
		return false
	}
}
