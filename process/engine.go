package process

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

// Config configures the engine of one replica. Start from DefaultConfig: the zero value is invalid.
type Config struct {
	// Workers is the maximum number of operations that run at the same time. With 0, the replica runs no operations but still
	// expires pending ones.
	Workers int
	// Limits maps kinds to the maximum number of their operations that run at the same time in this replica. Only Workers limits
	// the other kinds.
	Limits map[string]int
	// Lease is how long a replica keeps its operations after it stops renewing their leases. The replica renews them at intervals of
	// a third of this time. A shorter lease means a faster takeover after a crash, and more writes.
	Lease time.Duration
	// Poll is the interval between searches for due operations and expired leases when nothing wakes the engine.
	Poll time.Duration
	// PendingLimit is how long an operation may be pending before it fails.
	PendingLimit time.Duration
	// CreatedAfter, if set, excludes operations that were accepted before this time, except those that are being canceled.
	CreatedAfter time.Time
	// Component identifies this service. It becomes the component of a Problem whose error names none.
	Component string
	// Host is the name of the machine or the Pod. The name of the replica, which operators see while it runs an operation, begins with
	// it. It may be empty, and replicas may have the same one.
	Host string
	// Grace is how long running steps may continue after the engine is stopped. After that, their contexts end.
	Grace time.Duration
	// Observer receives events. Nil means that nothing observes the engine.
	Observer Observer
	// Tracer traces attempts. Nil disables tracing.
	Tracer Tracer
	// Busy reports whether requests are waiting for a CPU of this replica. While requests wait, the engine uses only one in 15
	// workers, but at least one. Running operations continue. Busy must not block. Nil means that no requests ever wait.
	Busy func() bool
}

// DefaultConfig returns the defaults of the services: 60 workers, leases of 6 s, and 48 h for pending operations. If a replica is
// killed, others take over its operations within 10 s.
func DefaultConfig() Config {
	const (
		workers      = 60
		lease        = 6 * time.Second
		pendingLimit = 48 * time.Hour
		grace        = 15 * time.Second
	)

	return Config{Workers: workers, Lease: lease, Poll: time.Second, PendingLimit: pendingLimit, Grace: grace}
}

// Engine claims operations and runs them. All engines on one store share the work. Run must be called once; the other methods
// may be called from any goroutine, even before Run.
type Engine[D any] struct {
	store     Store
	processes map[string]Process[D]
	kinds     []string
	// schedule is the order in which kinds are claimed. startDue rotates it on every call. Only the dispatcher uses it.
	schedule []Due
	// storeFailures counts consecutive failures of the dispatcher's calls to the store. storePause uses it.
	storeFailures int
	config        Config
	clock         clock.WithTicker
	log           logrus.FieldLogger
	owner         string
	wake          chan struct{} // holds at most one pending wake-up

	stopping <-chan struct{} // closed when operations must be handed back before their next step
	running  sync.WaitGroup
	mutex    sync.Mutex // guards leases and their fields
	leases   map[string]*lease
}

// NewEngine validates the configuration and the processes, and returns an engine that claims nothing before Run. Every kind that
// the service accepts needs a process.
func NewEngine[D any](store Store, config Config, clock clock.WithTicker, log logrus.FieldLogger, processes ...Process[D],
) (*Engine[D], error) {
	if config.Workers < 0 || config.Lease <= 0 || config.Poll <= 0 || config.PendingLimit <= 0 {
		return nil, fmt.Errorf("engine configuration %+v: durations must be positive, and workers must not be negative", config)
	}

	if config.Observer == nil {
		config.Observer = noObserver{}
	}

	if config.Tracer == nil {
		config.Tracer = noTracer{}
	}

	engine := &Engine[D]{
		store:     store,
		processes: map[string]Process[D]{},
		config:    config,
		clock:     clock,
		log:       log,
		owner:     path.Join(config.Host, uuid.NewString()),
		wake:      make(chan struct{}, 1),
		leases:    map[string]*lease{},
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
		engine.schedule = append(engine.schedule, Due{Kind: process.Kind}, Due{Kind: process.Kind, Pending: true})
	}

	if len(engine.kinds) == 0 {
		return nil, errors.New("an engine needs at least one process")
	}

	for kind, limit := range config.Limits {
		if !engine.Handles(kind) || limit < 1 {
			return nil, fmt.Errorf("limit %d for operations of kind %q: the limit must be positive, and the kind must be one of %s",
				limit, kind, strings.Join(engine.kinds, ", "))
		}
	}

	return engine, nil
}

// Handles reports whether a process is registered for the given kind. Operations of other kinds must not be accepted.
func (e *Engine[D]) Handles(kind string) bool {
	_, handled := e.processes[kind]

	return handled
}

// Wake makes the engine look for due operations now instead of at the next poll. It never blocks. Callers must wake the engine
// after committing a transaction that accepts an operation or makes one due.
func (e *Engine[D]) Wake() {
	select {
	case e.wake <- struct{}{}:
	default: // already pending
	}
}

// Run claims and runs operations until the context ends. It then stops claiming, gives running steps the grace period to finish,
// and hands back the operations, so that other replicas resume them immediately. It returns once no step is running. Run returns
// an error only at startup, if an unfinished operation has a kind without a process. It tolerates a store that does not respond.
func (e *Engine[D]) Run(ctx context.Context) error {
	kinds, err := e.unfinishedKinds(ctx)
	if err != nil {
		return nil // stopped before it started
	}

	if err := e.checkKinds(kinds); err != nil {
		return err
	}

	runs, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	e.stopping = ctx.Done()

	var background sync.WaitGroup

	background.Go(func() { e.renewLeases(runs) })
	background.Go(func() { e.expirePending(ctx) })
	background.Go(func() { e.interruptLate(runs, stop) })

	e.dispatch(ctx, runs)
	e.running.Wait()
	stop()
	background.Wait()

	return nil
}

// unfinishedKinds returns the kinds of all unfinished operations. It retries until the store responds or the context ends, so
// that a starting replica tolerates a database outage just as a running one does.
func (e *Engine[D]) unfinishedKinds(ctx context.Context) ([]string, error) {
	for {
		kinds, err := e.store.UnfinishedKinds(ctx)
		if err == nil {
			e.storeFailures = 0

			return kinds, nil
		}

		if ctx.Err() != nil {
			return nil, ctx.Err()
		}

		e.log.WithError(err).Warn("reading the kinds of unfinished operations failed")
		e.storeFailures++

		if err := lifecycle.Pause(ctx, e.clock, e.storePause()); err != nil {
			return nil, err //nolint:wrapcheck // there is no context to add
		}
	}
}

// checkKinds rejects unfinished operations that no process would ever run, for example after a downgrade.
func (e *Engine[D]) checkKinds(unfinished []string) error {
	for _, kind := range unfinished {
		if !e.Handles(kind) {
			return fmt.Errorf("unfinished operations of kind %q exist, but this release cannot run them: "+
				"start the release that accepted them, and wait until they have ended", kind)
		}
	}

	return nil
}

// dispatch claims work at each wake-up and each poll, until ctx ends. runs is the context of the claimed operations. It ends after
// the grace period.
func (e *Engine[D]) dispatch(ctx, runs context.Context) {
	poll := e.clock.NewTicker(e.config.Poll)
	defer poll.Stop()

	for ctx.Err() == nil {
		if more := e.claimWork(ctx, runs); more {
			continue
		}

		// While the store fails, only the pause determines when it is called again. Wake-ups must not cause additional calls.
		if pause := e.storePause(); pause > 0 {
			_ = lifecycle.Pause(ctx, e.clock, pause) // the loop checks the context

			continue
		}

		select {
		case <-ctx.Done():
		case <-e.wake:
		case <-poll.C():
		}
	}
}

// start runs a claimed operation in a new goroutine. The run occupies a worker until it has written its result.
func (e *Engine[D]) start(runs context.Context, work Claimed) {
	ctx, cancel := context.WithCancel(runs)
	leased := &lease{
		LeasedOperation: LeasedOperation{OperationID: work.Record.ID, Fence: work.Record.Lease.Fence},
		kind:            work.Record.Kind,
		cancel:          cancel,
		ends:            work.Record.StartedAt.Add(e.processes[work.Record.Kind].Limit),
		canceling:       work.Record.State == Canceling,
	}

	e.mutex.Lock()
	if former, still := e.leases[work.Record.ID]; still {
		former.cancel() // this replica has claimed the operation again
	}

	e.leases[work.Record.ID] = leased
	e.mutex.Unlock()

	e.config.Observer.RunBegan(work.Record.Kind)

	if work.TakenFrom == "" {
		e.config.Observer.PickedUp(work.Record.Kind, max(0, e.clock.Since(work.Record.NextRun)))
	}

	e.running.Go(func() {
		defer cancel()

		e.newRun(work, leased).execute(ctx)
		e.config.Observer.RunEnded(work.Record.Kind)

		e.release(leased)
		e.Wake() // a worker is free, and the next operation of the instance may be due
	})
}

// release removes the lease of a run that has ended, unless a newer run of the same operation has replaced it.
func (e *Engine[D]) release(ended *lease) {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	if e.leases[ended.OperationID] == ended {
		delete(e.leases, ended.OperationID)
	}
}

// interruptLate interrupts the steps that are still running after the grace period. The period starts when the engine stops. A
// separate goroutine measures it, because the dispatcher may be waiting for a claim at that time.
func (e *Engine[D]) interruptLate(runs context.Context, stop context.CancelFunc) {
	<-e.stopping

	select {
	case <-runs.Done():
	case <-e.clock.After(e.config.Grace):
		stop()
	}
}

// isStopping reports whether the context of Run has ended.
func (e *Engine[D]) isStopping() bool {
	select {
	case <-e.stopping:
		return true
	default:
		return false
	}
}
