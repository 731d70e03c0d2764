package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/program"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const (
	crowd = 10_000
	// crowdFew operations wait when memory is measured first.
	crowdFew = 1_000
	// settle is the pause before memory is read. The waiting operations are observed for watch.
	settle = 5 * time.Second
	watch  = 20 * time.Second
	// pollPeriod is the target interval between polls of an operation without a feed.
	pollPeriod = 20 * time.Second

	crowdStartLimit  = time.Minute
	crowdMemoryLimit = 90 * program.MiB
	perWaitingLimit  = 1_000
	callsPerChange   = 2
)

// measureCrowd measures a broker with very many waiting operations: delay until they start, cost while they wait, and calls to the
// Provisioner.
func measureCrowd(ctx context.Context, s *scope) ([]line, error) {
	var lines []line

	for _, kind := range []struct {
		name    string
		measure func(context.Context, *scope, env) ([]line, error)
		kyma    bool
	}{
		{name: "with the feed", measure: endCrowd},
		{name: "polled", measure: watchCrowd, kyma: true},
	} {
		if err := s.scoped(func(s *scope) error {
			w, err := s.newEnv(ctx, simulated.Behaviour{Hold: true, KymaProvisioner: kind.kyma}, false)
			if err != nil {
				return err
			}

			gathered, err := s.gather(ctx, w, kind.name)
			if err != nil {
				return err
			}

			asked, err := kind.measure(ctx, s, w)
			lines = append(append(lines, gathered...), asked...)

			return err
		}); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
	}

	return lines, nil
}

// gather brings all operations to the waiting state and returns the figures of that.
func (s *scope) gather(ctx context.Context, w env, name string) ([]line, error) {
	few, err := w.enter(ctx, crowdFew)
	if err != nil {
		return nil, err
	}

	before, err := w.rest(ctx, settle)
	if err != nil {
		return nil, err
	}

	many, err := w.enter(ctx, crowd-crowdFew)
	if err != nil {
		return nil, err
	}

	after, err := w.rest(ctx, settle)
	if err != nil {
		return nil, err
	}

	longest := max(few, many)
	each := (after.Resident - before.Resident) / (crowd - crowdFew)

	s.progress("%d wait, %s: started within %s, memory %s, at its peak %s", crowd, name, longest, mebibytes(after.Resident), mebibytes(after.Peak))

	return []line{
		{
			what:     fmt.Sprintf("%d waiting operations, %s (one run): started after acceptance, the last", crowd, name),
			measured: fmt.Sprintf("%.1f s", longest.Seconds()), must: "≤ 60 s", reached: verdict(longest <= crowdStartLimit),
		},
		{
			what: "the same: resident memory at its peak", measured: mebibytes(after.Peak), must: "< 90 MiB",
			reached: verdict(after.Peak < crowdMemoryLimit),
		},
		{
			what: "the same: memory an operation that waits", measured: fmt.Sprintf("%d bytes", each), must: "< 1 kB",
			reached: verdict(each < perWaitingLimit),
		},
	}, nil
}

// enter creates instances, waits until all their runtimes are ordered, and returns the longest delay of an order.
func (w env) enter(ctx context.Context, count int) (time.Duration, error) {
	generator := load.New(clients)
	defer generator.Close()

	ordered := w.provisioner.Calls().Orders + int64(count)

	answers, err := generator.Count(ctx, count, creates(w.broker.url, manyTenants))
	if err != nil {
		return 0, err
	}

	if err := waitFor(ctx, "all orders", func() bool { return w.provisioner.Calls().Orders >= ordered }); err != nil {
		return 0, errors.Join(err, operationStates(w.db))
	}

	var longest time.Duration

	orders := w.provisioner.Ordered()

	for _, answer := range answers {
		var accepted apiresponses.ProvisioningResponse
		if err := json.Unmarshal(answer.Body, &accepted); err != nil {
			return 0, fmt.Errorf("reading an answer: %w", err)
		}

		at, found := orders[accepted.OperationData]
		if !found {
			return 0, fmt.Errorf("operation %s has ordered no runtime", accepted.OperationData)
		}

		longest = max(longest, at.Sub(answer.At))
	}

	return longest, nil
}

// watchCrowd counts polls of the Provisioner.
func watchCrowd(ctx context.Context, s *scope, w env) ([]line, error) {
	before := w.provisioner.Calls()

	committed, err := s.commits(ctx)
	if err != nil {
		return nil, err
	}

	if _, err := w.rest(ctx, watch); err != nil {
		return nil, err
	}

	calls := w.provisioner.Calls().Since(before)

	after, err := s.commits(ctx)
	if err != nil {
		return nil, err
	}

	each := float64(calls.Statuses) / crowd / (watch.Seconds() / pollPeriod.Seconds())

	return []line{
		{
			what: "the same: calls an operation in 20 s", measured: fmt.Sprintf("%.2f", each), must: "≤ 1", reached: verdict(each <= 1),
		},
		{what: "the same: commits/s meanwhile", measured: rounded(float64(after-committed) / watch.Seconds())},
	}, nil
}

// endCrowd makes all runtimes ready at once and counts the calls to the Provisioner.
func endCrowd(ctx context.Context, s *scope, w env) ([]line, error) {
	idle, err := watchCrowd(ctx, s, w)
	if err != nil {
		return nil, err
	}

	began := time.Now()

	w.provisioner.Release()

	if err := waitForRows(ctx, w.db, allSucceeded, crowd); err != nil {
		return nil, err
	}

	ended, err := w.lastEnd(ctx)
	calls := w.provisioner.Calls()
	each := float64(calls.Statuses) / float64(calls.Changes)

	return append(idle,
		line{
			what: "the same: calls a change", measured: fmt.Sprintf("%.2f", each), must: "≤ 2", reached: verdict(each <= callsPerChange),
		},
		line{what: "the same: all done after all were ready at once", measured: fmt.Sprintf("%.1f s", ended.Sub(began).Seconds())},
	), err
}
