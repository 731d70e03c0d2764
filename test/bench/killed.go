package main

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/load"
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
	runs, err := measure.InTurn(s.runs, measure.Subject[recovery]{Name: "killed", Run: func() (run recovery, err error) {
		err = s.scoped(func(s *scope) error {
			run, err = s.recover(ctx)

			return err
		})
		s.progress("killed: the first moved after %s, all were done after %s", run.moved, run.done)

		return run, err
	}})
	if err != nil {
		return nil, err
	}

	var moved, done []time.Duration

	for _, run := range runs["killed"] {
		moved, done = append(moved, run.moved), append(done, run.done)
	}

	first, all := measure.Median(moved), measure.Median(done)

	return []line{
		{
			what:     fmt.Sprintf("SIGKILL with %d in flight, restart at once: first moved", killedAll),
			measured: fmt.Sprintf("%.1f s", first.Seconds()), must: "≤ 10 s", reached: verdict(first <= movedLimit),
		},
		{
			what: "the same: all done", measured: fmt.Sprintf("%.1f s", all.Seconds()), must: "≤ 20 s", reached: verdict(all <= doneLimit),
		},
	}, nil
}

// recover measures one kill. While the broker is down, all runtimes become ready.
func (s *scope) recover(ctx context.Context) (recovery, error) {
	w, err := s.newEnv(ctx, simulated.Behaviour{Hold: true, AnswerUntil: killedWaiting}, false)
	if err != nil {
		return recovery{}, err
	}

	if err := w.fly(ctx); err != nil {
		return recovery{}, err
	}

	killed := time.Now()
	w.broker.Kill()
	w.provisioner.Release()

	if err := s.startBrokerAgain(ctx, &w); err != nil {
		return recovery{}, err
	}

	if err := waitForRows(ctx, w.db, allSucceeded, killedAll); err != nil {
		return recovery{}, err
	}

	done, err := w.lastEnd(ctx)
	if err != nil {
		return recovery{}, err
	}

	var moved time.Time
	if err := w.db.GetContext(ctx, &moved, `SELECT min(ended_at) FROM timeline WHERE began_at > $1`, killed); err != nil {
		return recovery{}, fmt.Errorf("reading when the first operation moved: %w", err)
	}

	return recovery{moved: moved.Sub(killed), done: done.Sub(killed)}, nil
}

// fly brings the operations into their states before the kill.
func (w env) fly(ctx context.Context) error {
	generator := load.New(clients)
	defer generator.Close()

	if _, err := generator.Count(ctx, killedWaiting, creates(w.broker.url, manyTenants)); err != nil {
		return err
	}

	if err := waitForRows(ctx, w.db, allWait, killedWaiting); err != nil {
		return err
	}

	if _, err := generator.Count(ctx, killedOrdering, creates(w.broker.url, manyTenants)); err != nil {
		return err
	}

	return waitFor(ctx, "the last orders", func() bool { return w.provisioner.Calls().Orders >= killedAll })
}
