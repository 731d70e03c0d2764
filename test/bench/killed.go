package main

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/measure"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const (
	// When the broker is killed, most operations wait for their runtimes; as many as APP_PROVISIONER_CALLS allows are in an unanswered order.
	killedWaiting  = 968
	killedOrdering = 32
	killedAll      = killedWaiting + killedOrdering

	movedLimit = 10 * time.Second
	doneLimit  = 20 * time.Second
)

// recovery has the times from the kill to the first progress and to the end of all operations.
type recovery struct {
	moved, done time.Duration
}

// measureKilled kills a broker with SIGKILL, restarts it, and measures when its operations resume and when all have ended.
func measureKilled(ctx context.Context, s *scope) ([]line, error) {
	runs, err := repeat(s, "killed", func(s *scope) (recovery, error) {
		run, err := s.recover(ctx)
		s.progress("killed: the first moved after %s, all were done after %s", run.moved, run.done)

		return run, err
	})
	if err != nil {
		return nil, err
	}

	moved := measure.MedianOf(runs, func(run recovery) time.Duration { return run.moved })
	done := measure.MedianOf(runs, func(run recovery) time.Duration { return run.done })

	return []line{
		target(fmt.Sprintf("SIGKILL with %d in flight, restart at once: first moved", killedAll),
			inSeconds(moved), "≤ 10 s", moved <= movedLimit),
		target("the same: all done", inSeconds(done), "≤ 20 s", done <= doneLimit),
	}, nil
}

// recover measures one kill. While the broker is down, all runtimes become ready.
func (s *scope) recover(ctx context.Context) (recovery, error) {
	e, err := s.newEnv(ctx, simulated.Behaviour{Hold: true, AnswerUntil: killedWaiting}, false)
	if err != nil {
		return recovery{}, err
	}

	if err := e.prepareKill(ctx); err != nil {
		return recovery{}, err
	}

	killed := time.Now()
	e.broker.Kill()
	e.provisioner.Release()

	if err := s.startBrokerAgain(ctx, &e); err != nil {
		return recovery{}, err
	}

	done, err := e.finish(ctx, killedAll)
	if err != nil {
		return recovery{}, err
	}

	var moved time.Time
	if err := e.db.GetContext(ctx, &moved, `SELECT min(ended_at) FROM timeline WHERE began_at > $1`, killed); err != nil {
		return recovery{}, fmt.Errorf("reading when the first operation moved: %w", err)
	}

	return recovery{moved: moved.Sub(killed), done: done.Sub(killed)}, nil
}

// prepareKill brings the operations into their states before the kill.
func (e env) prepareKill(ctx context.Context) error {
	if _, err := e.create(ctx, killedWaiting); err != nil {
		return err
	}

	if err := waitForRows(ctx, e.db, allWait, killedWaiting); err != nil {
		return err
	}

	if _, err := e.create(ctx, killedOrdering); err != nil {
		return err
	}

	return waitFor(ctx, "the last orders", func() bool { return e.provisioner.Calls().Orders >= killedAll })
}
