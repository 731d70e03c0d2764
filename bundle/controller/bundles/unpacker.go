package bundles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// reportAfter is how long an attempt may take before the status says that the Bundle is being unpacked. Most attempts are shorter,
// so that their result is the next change of the status.
const reportAfter = 500 * time.Millisecond

// Source fetches the content of Bundles.
type Source interface {
	// Fetch writes the content of the Bundle with the given name into a folder. It returns the source with all movable references
	// pinned. If the content does not exist yet, pending describes what Fetch is waiting for, and Unpacker.Wake is called once the
	// content exists.
	Fetch(ctx context.Context, name string, from v1alpha1.BundleSource, into *os.Root) (pinned v1alpha1.BundleSource, pending string, err error)
	// Terminal reports whether the error would occur again in every retry.
	Terminal(err error) bool
	// Reason returns the reason to set in the Unpacked condition after a failed Fetch. An empty string stands for UnpackFailed.
	Reason(err error) string
}

// Store keeps content under its digest.
type Store interface {
	Put(ctx context.Context, content fs.FS) (digest string, err error)
	Has(digest string) bool
}

// UnpackerOptions configures an Unpacker. All fields are required.
type UnpackerOptions struct {
	Source Source
	Store  Store
	// Classes are the classes whose Bundles are unpacked.
	Classes []Class
	// Workers is the maximum number of Bundles that are unpacked at the same time.
	Workers int
	// Timeout limits the duration of an attempt.
	Timeout time.Duration
	// Retry is the pause after the first failed attempt. The pause doubles with each further failure, up to MaxRetry, and is varied
	// at random by up to a fifth.
	Retry, MaxRetry time.Duration
	// Folder is the folder in which content is unpacked before it is stored.
	Folder   string
	Registry prometheus.Registerer
	Log      logr.Logger
}

// Unpacker fetches, converts and stores content. It has at most one attempt in progress per Bundle. It remembers a successful
// result until the controller has written it to the status, and a failure until the next attempt.
type Unpacker struct {
	options UnpackerOptions
	formats map[string]Format
	metrics *metrics
	slots   chan struct{}
	stop    context.CancelFunc
	base    context.Context //nolint:containedctx // attempts outlive the calls that start them
	running sync.WaitGroup

	mutex sync.Mutex
	jobs  map[string]*job
	// changed contains the names of the Bundles that the controller should reconcile. While it is not empty, signal contains a token.
	changed map[string]struct{}
	signal  chan struct{}
}

// outcome is the result of an attempt.
type outcome struct {
	digest   string
	pinned   v1alpha1.BundleSource
	pending  string
	err      error
	terminal bool
	// reason is the reason to set in the condition. An empty reason means UnpackFailed.
	reason string
}

// States of a job.
const (
	stateQueued = iota
	stateRunning
	stateDone
)

// job is the last attempt to unpack a Bundle.
type job struct {
	uid    types.UID
	state  int
	cancel context.CancelFunc
	// again is true if Wake has been called since the attempt began. If the attempt then fails, the next one is due immediately.
	again    bool
	failures int
	// retryAt is the time of the next attempt after a failure. After a terminal failure and without an upload, only Fill uses it.
	retryAt time.Time
	outcome outcome
}

// isStuck reports whether ensure does not make another attempt.
func (j *job) isStuck() bool {
	return j.state == stateDone && (j.outcome.terminal || j.outcome.pending != "")
}

var errDigestChanged = errors.New("the content differs from the content that was unpacked first: the source has changed. " +
	"Restore the source, or create another Bundle")

// NewUnpacker returns an Unpacker and registers its metrics. The Unpacker accepts work immediately, and stops when the context of
// Run ends.
func NewUnpacker(options UnpackerOptions) (*Unpacker, error) {
	formats, err := byName(options.Classes)
	if err != nil {
		return nil, err
	}

	if options.Workers < 1 {
		return nil, errors.New("at least one worker is required to unpack Bundles")
	}

	registered, err := newMetrics(options.Registry)
	if err != nil {
		return nil, fmt.Errorf("registering the metrics of Bundles: %w", err)
	}

	base, stop := context.WithCancel(context.Background())

	return &Unpacker{
		options: options, formats: formats, metrics: registered, slots: make(chan struct{}, options.Workers),
		base: base, stop: stop, jobs: map[string]*job{}, changed: map[string]struct{}{}, signal: make(chan struct{}, 1),
	}, nil
}

// Run waits until the context ends. Then it cancels all attempts, and returns when they have ended.
func (u *Unpacker) Run(ctx context.Context) error {
	<-ctx.Done()
	u.stop()
	u.running.Wait()

	return nil
}

// Fill fetches the content of an unpacked Bundle again. It returns immediately. It does nothing while an attempt is in progress, and
// during the pause after a failure. A terminal failure and a missing upload are followed by a pause, too: in a replica that does not lead,
// nothing else causes another attempt when the source is restored.
func (u *Unpacker) Fill(bundle *v1alpha1.Bundle) {
	if _, ours := u.formats[bundle.Spec.ProvisionerClassName]; !ours {
		return
	}

	u.set(func() {
		if current := u.jobs[bundle.Name]; current != nil && current.isStuck() && !time.Now().Before(current.retryAt) {
			delete(u.jobs, bundle.Name)
		}
	})
	u.ensure(bundle)
}

// forgetStuck drops the results after which only Wake or Fill cause another attempt. They may be old if this replica has not led before.
func (u *Unpacker) forgetStuck() {
	u.set(func() { maps.DeleteFunc(u.jobs, func(_ string, current *job) bool { return current.isStuck() }) })
}

// Wake makes the next attempt to unpack a Bundle due, and asks the controller to reconcile the Bundle. Call it when the content of
// the source may have changed.
func (u *Unpacker) Wake(name string) {
	u.mutex.Lock()

	if current := u.jobs[name]; current != nil {
		if current.state == stateDone {
			delete(u.jobs, name)
		} else {
			current.again = true
		}
	}

	u.mutex.Unlock()
	u.report(name)
}

// forget cancels the attempt to unpack a Bundle, if there is one, and drops its result.
func (u *Unpacker) forget(name string) {
	u.mutex.Lock()
	defer u.mutex.Unlock()

	if current := u.jobs[name]; current != nil {
		current.cancel()
		delete(u.jobs, name)
	}
}

// ensure starts an attempt to unpack the Bundle if one is due, and returns a copy of the current job.
func (u *Unpacker) ensure(bundle *v1alpha1.Bundle) job {
	u.mutex.Lock()
	defer u.mutex.Unlock()

	current := u.jobs[bundle.Name]

	switch {
	case current == nil:
	case current.uid != bundle.UID:
		current.cancel()
	case current.state != stateDone, current.outcome.pending != "", current.outcome.terminal:
		return *current
	case current.outcome.err != nil && time.Now().Before(current.retryAt):
		return *current
	case current.outcome.err == nil && u.options.Store.Has(current.outcome.digest):
		return *current
	}

	next := &job{uid: bundle.UID, state: stateQueued}
	if current != nil && current.uid == bundle.UID {
		next.failures = current.failures
	}

	var ctx context.Context
	ctx, next.cancel = context.WithCancel(u.base)
	u.jobs[bundle.Name] = next
	bundle = bundle.DeepCopy()

	u.running.Go(func() { u.work(ctx, bundle, next) })

	return *next
}

// work waits for a worker, makes an attempt and stores its result.
func (u *Unpacker) work(ctx context.Context, bundle *v1alpha1.Bundle, current *job) {
	defer current.cancel()

	select {
	case u.slots <- struct{}{}:
	default: // all workers are busy
		select {
		case u.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}

	u.metrics.busy.Inc()
	u.set(func() { current.state = stateRunning })

	start := time.Now()
	running := time.AfterFunc(reportAfter, func() { u.report(bundle.Name) })
	result := u.attempt(ctx, bundle)

	running.Stop()
	<-u.slots
	u.metrics.busy.Dec()

	if ctx.Err() != nil {
		return
	}

	u.metrics.record(bundle.Spec.Source.Type, result, time.Since(start))
	u.set(func() {
		current.state, current.outcome = stateDone, result

		switch {
		case result.err != nil && !result.terminal:
			current.failures++
			current.retryAt = time.Now().Add(u.pause(current.failures))
		case result.err == nil:
			current.failures = 0
		}

		if current.isStuck() {
			current.retryAt = time.Now().Add(u.options.MaxRetry)
		}

		if current.again && (result.err != nil || result.pending != "") && u.jobs[bundle.Name] == current {
			delete(u.jobs, bundle.Name)
		}
	})
	u.report(bundle.Name)
}

func (u *Unpacker) set(change func()) {
	u.mutex.Lock()
	defer u.mutex.Unlock()

	change()
}

// report asks the controller to reconcile a Bundle. It never waits for the controller, which does not run in all replicas.
func (u *Unpacker) report(name string) {
	u.set(func() { u.changed[name] = struct{}{} })

	select {
	case u.signal <- struct{}{}:
	default: // the controller has not read the previous signal yet, and will see both names
	}
}

// take returns the names that were reported since the last call.
func (u *Unpacker) take() []string {
	u.mutex.Lock()
	defer u.mutex.Unlock()

	names := slices.Collect(maps.Keys(u.changed))
	clear(u.changed)

	return names
}

// pause returns how long to wait after the given number of failures.
func (u *Unpacker) pause(failures int) time.Duration {
	pause := u.options.MaxRetry
	if shift := failures - 1; shift < 20 {
		pause = min(u.options.Retry<<shift, u.options.MaxRetry)
	}

	return wait.Jitter(pause*4/5, 0.5)
}

// attempt unpacks a Bundle. It recovers from panics of fetchers and formats, which read untrusted input.
func (u *Unpacker) attempt(ctx context.Context, bundle *v1alpha1.Bundle) (result outcome) {
	defer func() {
		if problem := recover(); problem != nil {
			u.metrics.panics.Inc()
			u.options.Log.Error(fmt.Errorf("panic: %v", problem), "unpacking a Bundle failed", "bundle", bundle.Name, "stack", string(debug.Stack()))
			result = outcome{err: errors.New("unpacking failed with an internal error: see the log of the bundle provisioner")}
		}
	}()

	ctx, cancel := context.WithTimeout(ctx, u.options.Timeout)
	defer cancel()

	folder, err := os.MkdirTemp(u.options.Folder, "unpacking-")
	if err != nil {
		return outcome{err: fmt.Errorf("creating a temporary folder: %w", err)}
	}
	defer func() { _ = os.RemoveAll(folder) }()

	into, err := os.OpenRoot(folder)
	if err != nil {
		return outcome{err: fmt.Errorf("opening a temporary folder: %w", err)}
	}
	defer func() { _ = into.Close() }()

	result = u.unpack(ctx, bundle, into)
	if result.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		result.terminal = false
		result.err = fmt.Errorf("unpacking took longer than %s: %w", u.options.Timeout, result.err)
	}

	return result
}

func (u *Unpacker) unpack(ctx context.Context, bundle *v1alpha1.Bundle, into *os.Root) outcome {
	from, again := bundle.Spec.Source, bundle.Status.Digest != "" && bundle.Status.ResolvedSource != nil
	if again {
		from = *bundle.Status.ResolvedSource
	}

	pinned, pending, err := u.options.Source.Fetch(ctx, bundle.Name, from, into)
	if err != nil {
		return outcome{err: err, terminal: u.options.Source.Terminal(err), reason: u.options.Source.Reason(err)}
	}

	if pending != "" {
		return outcome{pending: pending}
	}

	converted, err := u.formats[bundle.Spec.ProvisionerClassName].Convert(ctx, into.FS())
	if err != nil {
		return outcome{err: fmt.Errorf("the content is not valid: %w", err), terminal: !failure.Is(err, failure.Transient)}
	}

	digest, err := u.options.Store.Put(ctx, converted)
	if err != nil {
		return outcome{err: fmt.Errorf("storing the content: %w", err), terminal: u.options.Source.Terminal(err)}
	}

	if again && digest != bundle.Status.Digest {
		return outcome{err: errDigestChanged, terminal: true}
	}

	if again {
		pinned = from
	}

	return outcome{digest: digest, pinned: pinned}
}
