package crashtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// monitor observes the claims, writes and steps of all replicas of a run and records violated invariants. It sees calls in the
// order in which the store executes them.
type monitor struct {
	mutex      sync.Mutex
	operations map[string]*observation
	// violations describe the violated invariants, in the order in which they were found.
	violations []string
}

// observation is the state of an operation as derived from claims and writes.
type observation struct {
	fence    int64
	finished []string
	// ran lists the steps that have run, keyed by stage.
	ran map[string][]string
	// holder is the proxy of the replica with the lease, or nil.
	holder *Proxy
	// late is the write that released the operation, if the monitor has seen the next claim before this write. Otherwise it is
	// nil.
	late *lateWrite
	// takeovers counts the claims made after a lease had expired.
	takeovers int
}

// lateWrite identifies a write by its fence and its replica.
type lateWrite struct {
	fence int64
	by    *Proxy
}

func newMonitor() *monitor { return &monitor{operations: map[string]*observation{}} }

// of returns the observation of the operation, and adds one if there is none. The caller holds the mutex.
func (m *monitor) of(operationID string) *observation {
	observed, ok := m.operations[operationID]
	if !ok {
		observed = &observation{ran: map[string][]string{}}
		m.operations[operationID] = observed
	}

	return observed
}

// violated records a violation. The caller holds the mutex.
func (m *monitor) violated(format string, args ...any) {
	m.violations = append(m.violations, fmt.Sprintf(format, args...))
}

// claimed checks that every claim raises the fence by one, and that it names the previous owner if and only if a lease has
// expired.
func (m *monitor) claimed(proxy *Proxy, claimed []process.Claimed) {
	m.mutex.Lock()
	defer m.mutex.Unlock()

	for _, work := range claimed {
		operation := m.of(work.Record.ID)

		if work.Record.Lease.Fence != operation.fence+1 {
			m.violated("%s was claimed with fence %d after %d", work.Record.Kind, work.Record.Lease.Fence, operation.fence)
		}

		// Two replicas can act at the same instant: the one that released the operation may report its write after this claim.
		if operation.holder != nil && work.TakenFrom == "" && operation.late == nil {
			operation.late = &lateWrite{fence: operation.fence, by: operation.holder}
		} else if (operation.holder != nil) != (work.TakenFrom != "") {
			m.violated("%s was claimed as taken over from %q; it had a holder: %t", work.Record.Kind, work.TakenFrom, operation.holder != nil)
		}

		if work.TakenFrom != "" {
			operation.takeovers++
		}

		operation.fence, operation.holder = work.Record.Lease.Fence, proxy
	}
}

// end records a violation for each operation that was claimed although its holder had not released it.
func (m *monitor) end() {
	m.mutex.Lock()
	defer m.mutex.Unlock()

	for id, operation := range m.operations {
		if operation.late != nil {
			m.violated("operation %s was claimed although fence %d still held it", id, operation.late.fence)
		}
	}
}

// saved checks a successful write. The write must carry the fence of the last claim, come from the replica that made this
// claim, and keep all finished stages.
func (m *monitor) saved(proxy *Proxy, progress process.Progress) {
	m.mutex.Lock()
	defer m.mutex.Unlock()

	record := progress.Record
	operation := m.of(record.ID)

	if late := operation.late; late != nil && progress.Release && *late == (lateWrite{record.Lease.Fence, proxy}) {
		operation.late, operation.finished = nil, slices.Clone(record.FinishedStages)

		return
	}

	if record.Lease.Fence != operation.fence || proxy != operation.holder {
		m.violated("%s was written under fence %d instead of the latest fence %d", record.Kind, record.Lease.Fence, operation.fence)
	}

	if len(record.FinishedStages) < len(operation.finished) ||
		!slices.Equal(record.FinishedStages[:len(operation.finished)], operation.finished) {
		m.violated("%s: finished stages changed from %v to %v", record.Kind, operation.finished, record.FinishedStages)
	}

	operation.finished = slices.Clone(record.FinishedStages)

	if progress.Release {
		operation.holder = nil
	}
}

// began checks that a step of a finished stage does not run. A replica that has not yet noticed the loss of its lease is
// exempt, because the fence rejects its results.
func (m *monitor) began(operation process.Record, stage, step string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()

	observed := m.of(operation.ID)
	if operation.Lease.Fence != observed.fence {
		return
	}

	if slices.Contains(observed.finished, stage) {
		m.violated("%s: step %s ran although stage %s was finished", operation.Kind, step, stage)
	}

	if !slices.Contains(observed.ran[stage], step) {
		observed.ran[stage] = append(observed.ran[stage], step)
	}
}

// observed wraps a step and reports its runs to the monitor.
type observed[D any] struct {
	process.Step[D]

	stage   string
	proxy   *Proxy
	monitor *monitor
}

// Run implements process.Step.
func (s observed[D]) Run(ctx context.Context, operation process.Operation[D], log logrus.FieldLogger,
) (process.Operation[D], time.Duration, error) {
	if err := s.proxy.checkAlive(); err != nil {
		return operation, 0, err
	}

	s.monitor.began(operation.Record, s.stage, s.Name())

	return s.Step.Run(ctx, operation, log)
}

// observe returns the processes with every step wrapped in an observed step. It does not change its arguments.
func observe[D any](processes []process.Process[D], proxy *Proxy, monitor *monitor) []process.Process[D] {
	observing := make([]process.Process[D], 0, len(processes))

	for _, each := range processes {
		stages := make([]process.Stage[D], 0, len(each.Stages))

		for _, stage := range each.Stages {
			tasks := slices.Clone(stage.Steps)
			for i := range tasks {
				tasks[i].Step = observed[D]{Step: tasks[i].Step, stage: stage.Name, proxy: proxy, monitor: monitor}
			}

			stage.Steps = tasks
			stages = append(stages, stage)
		}

		each.Stages = stages
		observing = append(observing, each)
	}

	return observing
}
