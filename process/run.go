package process

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// run executes one claimed operation until the operation ends or waits, or its lease is lost. Only one goroutine uses a run, but
// the lease is shared with the renewal.
type run[D any] struct {
	engine    *Engine[D]
	lease     *lease
	operation Operation[D]
	takenFrom string
	// attempts are the stored attempts, keyed by step name.
	attempts map[string]Attempt
	// progress collects the results since the last write.
	progress Progress
	log      logrus.FieldLogger

	// endTrace ends the span of the running attempt.
	endTrace func(Outcome, string)

	// unreadable is Claimed.Unreadable. keepPayload makes writes keep the stored payload, because the run could not decode it.
	unreadable  error
	keepPayload bool
	// stageEnded reports that a stage has ended since the last write. The end is stored before the next step runs. If no step
	// follows, it is stored with the end of the operation.
	stageEnded bool
	// uncertain reports whether a write has failed. See errUncertain.
	uncertain bool
}

// newRun returns the run of a claimed operation. Its logger adds the operation's ID, instance and kind to every line.
func (e *Engine[D]) newRun(work Claimed, lease *lease) *run[D] {
	attempts := make(map[string]Attempt, len(work.Attempts))
	for _, attempt := range work.Attempts {
		attempts[attempt.Step] = attempt
	}

	return &run[D]{
		engine:    e,
		lease:     lease,
		operation: Operation[D]{Record: work.Record},
		takenFrom: work.TakenFrom,
		attempts:  attempts,

		endTrace:   func(Outcome, string) {},
		unreadable: work.Unreadable,
		log: e.log.WithFields(logrus.Fields{
			logging.OperationID: work.Record.ID,
			logging.InstanceID:  work.Record.InstanceID,
			logging.Kind:        work.Record.Kind,
		}),
	}
}

// execute runs the unfinished stages. It returns when the operation has ended, waits, or was handed back, or when its lease is
// lost. By then, the result is stored, unless a write failed or another replica continues the operation.
func (r *run[D]) execute(ctx context.Context) {
	if r.takenFrom != "" {
		r.addEvent(TakenOver, "the replica "+r.takenFrom+" stopped renewing its lease")
	}

	if err := r.decode(); err != nil {
		r.keepPayload = true
		r.log.WithError(err).Error("reading the operation's data failed")
		r.fail(ctx, failure.Wrap(failure.Internal, err, "the operation's data cannot be read"))

		return
	}

	process := r.engine.processes[r.operation.Kind]

	for _, stage := range process.Stages {
		if r.operation.Finished(stage.Name) {
			continue
		}

		if !r.runStage(ctx, process, stage) {
			return
		}

		r.operation.FinishedStages = append(r.operation.FinishedStages, stage.Name)
		r.stageEnded = true
	}

	r.finish(ctx, Succeeded, OperationSucceeded, "")
}

// decode decodes the payload into Data. It fails if the payload could not be decrypted.
func (r *run[D]) decode() error {
	if r.unreadable != nil {
		return r.unreadable
	}

	if err := json.Unmarshal(r.operation.Payload, &r.operation.Data); err != nil {
		return fmt.Errorf("decoding the payload: %w", err)
	}

	return nil
}

// runStage runs the steps of a stage that are enabled and not skipped. It reports whether the stage is finished and the run may
// continue.
func (r *run[D]) runStage(ctx context.Context, process Process[D], stage Stage[D]) bool {
	for _, task := range stage.Steps {
		enabled, err := r.enabled(task)
		if err != nil {
			r.fail(ctx, err)

			return false
		}

		if !enabled {
			continue
		}

		if r.stageEnded && !r.write(ctx) {
			return false
		}

		r.stageEnded = false

		if !r.mayContinue(ctx, process) {
			return false
		}

		if r.skipped(stage.Name, task.Step.Name()) {
			continue
		}

		if !r.runStep(ctx, stage, task.Step) {
			return false
		}
	}

	return true
}

// enabled reports whether the task's condition is met. If the condition panics, enabled returns an error.
func (r *run[D]) enabled(task Task[D]) (enabled bool, err error) {
	err = guard(r.log.WithField(logging.Step, task.Step.Name()), "condition of the step", func() { enabled = task.When.Met(r.operation) })

	return enabled, err
}

// skipped reports whether the run omits the step, because an operator requested the skip now or earlier. It records a new request
// in the timeline, and clears the problem, the progress and the awaited event that the step has left in the operation.
func (r *run[D]) skipped(stage, step string) bool {
	if r.operation.Skip.Step == step {
		now := r.engine.clock.Now()
		attempt := r.attempts[step]
		attempt.Stage, attempt.Step, attempt.Last = stage, step, now

		r.operation.SkippedSteps = append(r.operation.SkippedSteps, step)
		r.operation.Problem, r.operation.Progress, r.operation.WaitingFor = Problem{}, "", ""
		r.progress.Cleared = append(r.progress.Cleared, attempt)
		r.progress.EndedSteps = append(r.progress.EndedSteps, step)
		r.addEntry(attempt, Skipped, r.operation.Skip.Reason, time.Time{})
		r.operation.Skip = Skip{}
		delete(r.attempts, step)
	}

	return slices.Contains(r.operation.SkippedSteps, step)
}

// mayContinue is the safe point before each step. At this point, a canceled operation ends, an operation that has exceeded its
// time limit fails, and a stopping replica hands back its operation. mayContinue reports whether the next step may run.
func (r *run[D]) mayContinue(ctx context.Context, process Process[D]) bool {
	r.engine.mutex.Lock()
	canceling := r.lease.canceling
	r.engine.mutex.Unlock()

	now := r.engine.clock.Now()

	switch {
	case canceling:
		r.finish(ctx, Canceled, OperationCanceled, "")
	case r.overdue(process, now):
		r.failWith(ctx, r.engine.timedOut("the operation did not finish", process.Limit))
	case ctx.Err() != nil || r.engine.isStopping():
		r.release(ctx, now)
	default:
		return true
	}

	return false
}

// overdue reports whether the operation has reached its time limit, measured from the first claim and including waits.
func (r *run[D]) overdue(process Process[D], now time.Time) bool {
	return !r.operation.StartedAt.IsZero() && now.Sub(r.operation.StartedAt) >= process.Limit
}
