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

// witness sees what all replicas of a story claim, write and run, and notes what must not be.
type witness struct {
	mutex      sync.Mutex
	operations map[string]*seen
	wrong      []string
}

// seen is what the witness knows of an operation.
type seen struct {
	fence    int64
	finished []string
	// ran are the steps that were run, by their stage.
	ran map[string][]string
	// holder is the line of the replica that has the lease.
	holder *Line
	// takeovers counts the claims that took the lease from somebody.
	takeovers int
}

func newWitness() *witness { return &witness{operations: map[string]*seen{}} }

func (w *witness) of(operationID string) *seen {
	known, ok := w.operations[operationID]
	if !ok {
		known = &seen{ran: map[string][]string{}}
		w.operations[operationID] = known
	}

	return known
}

func (w *witness) note(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

func (w *witness) claimed(line *Line, claimed []process.Claimed) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	for _, work := range claimed {
		operation := w.of(work.Record.ID)

		if work.Record.Lease.Fence != operation.fence+1 {
			w.note("%s was claimed with fence %d after %d", work.Record.Kind, work.Record.Lease.Fence, operation.fence)
		}

		if (operation.holder != nil) != (work.TakenFrom != "") {
			w.note("%s was claimed as taken from %q, it is %t that it had a holder", work.Record.Kind, work.TakenFrom, operation.holder != nil)
		}

		if work.TakenFrom != "" {
			operation.takeovers++
		}

		operation.fence, operation.holder = work.Record.Lease.Fence, line
	}
}

func (w *witness) saved(line *Line, progress process.Progress) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	record := progress.Record
	operation := w.of(record.ID)

	if record.Lease.Fence != operation.fence || line != operation.holder {
		w.note("%s was written under fence %d, which was not the last one, %d", record.Kind, record.Lease.Fence, operation.fence)
	}

	if len(record.FinishedStages) < len(operation.finished) ||
		!slices.Equal(record.FinishedStages[:len(operation.finished)], operation.finished) {
		w.note("%s had finished %v and then %v", record.Kind, operation.finished, record.FinishedStages)
	}

	operation.finished = slices.Clone(record.FinishedStages)

	if progress.Release {
		operation.holder = nil
	}
}

// began notes that a replica began a step. One that lost its lease and does not know it yet may finish what it has begun.
func (w *witness) began(operation process.Record, stage, step string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	known := w.of(operation.ID)
	if operation.Lease.Fence != known.fence {
		return
	}

	if slices.Contains(known.finished, stage) {
		w.note("%s: step %s ran although its stage %s was finished", operation.Kind, step, stage)
	}

	if !slices.Contains(known.ran[stage], step) {
		known.ran[stage] = append(known.ran[stage], step)
	}
}

// watched is a step whose runs the witness sees.
type watched[D any] struct {
	process.Step[D]

	stage   string
	line    *Line
	witness *witness
}

// Run implements process.Step.
func (s watched[D]) Run(ctx context.Context, operation process.Operation[D], log logrus.FieldLogger,
) (process.Operation[D], time.Duration, error) {
	if err := s.line.stand(); err != nil {
		return operation, 0, err
	}

	s.witness.began(operation.Record, s.stage, s.Name())

	return s.Step.Run(ctx, operation, log)
}

// watch has the witness see every step of the processes.
func watch[D any](processes []process.Process[D], line *Line, witness *witness) []process.Process[D] {
	seen := make([]process.Process[D], 0, len(processes))

	for _, each := range processes {
		stages := make([]process.Stage[D], 0, len(each.Stages))

		for _, stage := range each.Stages {
			tasks := slices.Clone(stage.Steps)
			for i := range tasks {
				tasks[i].Step = watched[D]{Step: tasks[i].Step, stage: stage.Name, line: line, witness: witness}
			}

			stage.Steps = tasks
			stages = append(stages, stage)
		}

		each.Stages = stages
		seen = append(seen, each)
	}

	return seen
}
