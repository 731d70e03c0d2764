package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/test/bench/program"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const (
	crowd = 10_000
	// crowdFew is the number of waiting operations at the first measurement of memory.
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

// measureCrowd measures a broker with very many waiting operations: the delay until they start, their cost while they wait, and the calls to
// the Provisioner.
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
			e, err := s.newEnv(ctx, simulated.Behaviour{Hold: true, KymaProvisioner: kind.kyma}, false)
			if err != nil {
				return err
			}

			gathered, err := s.gather(ctx, e, kind.name)
			if err != nil {
				return err
			}

			measured, err := kind.measure(ctx, s, e)
			lines = append(append(lines, gathered...), measured...)

			return err
		}); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
	}

	return lines, nil
}

// gather creates the operations, first a few and then the rest, and waits until their runtimes are ordered. The difference in memory between
// both is the cost of a waiting operation.
func (s *scope) gather(ctx context.Context, e env, name string) ([]line, error) {
	few, err := e.enter(ctx, crowdFew)
	if err != nil {
		return nil, err
	}

	before, err := e.rest(ctx, settle)
	if err != nil {
		return nil, err
	}

	many, err := e.enter(ctx, crowd-crowdFew)
	if err != nil {
		return nil, err
	}

	after, err := e.rest(ctx, settle)
	if err != nil {
		return nil, err
	}

	longest := max(few, many)
	each := (after.Resident - before.Resident) / (crowd - crowdFew)

	s.progress("%d wait, %s: started within %s, memory %s, at its peak %s", crowd, name, longest, mebibytes(after.Resident), mebibytes(after.Peak))

	return []line{
		target(fmt.Sprintf("%d waiting operations, %s (one run): started after acceptance, the last", crowd, name),
			inSeconds(longest), "≤ 60 s", longest <= crowdStartLimit),
		target("the same: resident memory at its peak", mebibytes(after.Peak), "< 90 MiB", after.Peak < crowdMemoryLimit),
		target("the same: memory an operation that waits", fmt.Sprintf("%d bytes", each), "< 1 kB", each < perWaitingLimit),
	}, nil
}

// enter creates instances, waits until all their runtimes are ordered, and returns the longest time from acceptance to order.
func (e env) enter(ctx context.Context, count int) (time.Duration, error) {
	ordered := e.provisioner.Calls().Orders + int64(count)

	answers, err := e.create(ctx, count)
	if err != nil {
		return 0, err
	}

	if err := waitFor(ctx, "all orders", func() bool { return e.provisioner.Calls().Orders >= ordered }); err != nil {
		return 0, errors.Join(err, operationStates(e.db))
	}

	var longest time.Duration

	orders := e.provisioner.Ordered()

	for _, answer := range answers {
		var accepted apiresponses.ProvisioningResponse
		if err := json.Unmarshal(answer.Body, &accepted); err != nil {
			return 0, fmt.Errorf("reading an answer: %w", err)
		}

		at, found := orders[accepted.OperationData]
		if !found {
			return 0, fmt.Errorf("operation %s has not ordered a runtime", accepted.OperationData)
		}

		longest = max(longest, at.Sub(answer.At))
	}

	return longest, nil
}

// watchCrowd counts the polls of the Provisioner and the commits during watch.
func watchCrowd(ctx context.Context, s *scope, e env) ([]line, error) {
	before := e.provisioner.Calls()

	committed, err := s.commits(ctx)
	if err != nil {
		return nil, err
	}

	if _, err := e.rest(ctx, watch); err != nil {
		return nil, err
	}

	statuses := e.provisioner.Calls().Statuses - before.Statuses

	after, err := s.commits(ctx)
	if err != nil {
		return nil, err
	}

	each := float64(statuses) / crowd / (watch.Seconds() / pollPeriod.Seconds())

	return []line{
		target("the same: calls an operation in 20 s", fmt.Sprintf("%.2f", each), "≤ 1", each <= 1),
		{what: "the same: commits/s meanwhile", measured: rounded(float64(after-committed) / watch.Seconds())},
	}, nil
}

// endCrowd makes all runtimes ready at once and counts the calls to the Provisioner.
func endCrowd(ctx context.Context, s *scope, e env) ([]line, error) {
	idle, err := watchCrowd(ctx, s, e)
	if err != nil {
		return nil, err
	}

	began := time.Now()

	e.provisioner.Release()

	ended, err := e.finish(ctx, crowd)
	if err != nil {
		return nil, err
	}

	calls := e.provisioner.Calls()
	each := float64(calls.Statuses) / float64(calls.Changes)

	return append(idle,
		target("the same: calls a change", fmt.Sprintf("%.2f", each), "≤ 2", each <= callsPerChange),
		line{what: "the same: all done after all were ready at once", measured: inSeconds(ended.Sub(began))},
	), nil
}
