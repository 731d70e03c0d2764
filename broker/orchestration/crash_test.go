package orchestration_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/process/orchestrating"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// proxied calls the conductor through the proxy of a replica.
type proxied struct {
	orchestrating.Orchestrations

	proxy *crashtest.Proxy
}

// call returns an injected fault as a database error.
func (p proxied) call(ctx context.Context, name string, call func(ctx context.Context) error) error {
	err := p.proxy.Call(ctx, name, call)
	if errors.Is(err, crashtest.ErrLost) {
		return failure.Wrap(failure.Transient, err, "the database does not respond correctly")
	}

	return err
}

func (p proxied) Plan(ctx context.Context, by process.Record) error {
	return p.call(ctx, "plan", func(ctx context.Context) error { return p.Orchestrations.Plan(ctx, by) })
}

func (p proxied) Advance(ctx context.Context, by process.Record) (progress orchestrating.Progress, err error) {
	err = p.call(ctx, "advance", func(ctx context.Context) error {
		progress, err = p.Orchestrations.Advance(ctx, by)

		return err
	})

	return progress, err
}

// crashTargets is the number of targets of the crash tests.
const crashTargets = 20

// scenario is an orchestration of 20 instances, at most 6 at once, 3 in a region and 4 at a provider. One upgrade fails and is retried
// by an operator.
func scenario() crashtest.Scenario[environment.Data] {
	return crashtest.Scenario[environment.Data]{
		Name: "orchestrate", Kind: environment.KindOrchestrate,
		Expected: strings.TrimLeft(`
afterwards:
  Description: 20 succeeded
  State: succeeded
operations:
- orchestrate succeeded
- orchestrate succeeded
`, "\n"),
		Open: func(t *testing.T) crashtest.Env[environment.Data] {
			t.Helper()

			f := newFixture(t, storagetest.SQLite(t), clock.RealClock{})
			f.fill(crashTargets)
			f.setFailing("i00007", true)

			parameters := all(6)
			parameters.Strategy.Parallel.WorkersPerRegion, parameters.Strategy.Parallel.WorkersPerProvider = 3, 4

			var id string

			return crashtest.Env[environment.Data]{
				Store: f.operations,
				Processes: func(proxy *crashtest.Proxy) []process.Process[environment.Data] {
					return f.processes(proxied{f.Conductor, proxy})
				},
				Script: func(run *crashtest.Run[environment.Data]) []string {
					var first string

					run.InjectFaults()
					id, first = f.order(parameters)
					run.Await(first)

					if got, stats := f.get(id); got.State != environment.OrchestrationFailed || stats["failed"] != 1 || stats["succeeded"] != crashTargets-1 {
						f.Errorf("before the retry: %s, %s", got.State, got.Description)
					}

					f.wantUpgrades(1)
					f.setFailing("i00007", false)

					retried, err := f.Retry(f.Context(), id, orchestration.Retry{})
					if err != nil || len(retried.Targets) != 1 {
						f.Fatalf("retried %+v, %v", retried, err)
					}

					second := f.conductorOf(id)
					run.Await(second)

					return []string{first, second}
				},
				Upstream: func() any {
					for group, limit := range map[string]int{"''": 6, "region": 3, "provider": 4} {
						if f.most[group] > limit {
							f.Errorf("at once by %s: %d, the limit is %d", group, f.most[group], limit)
						}
					}

					if f.most["''"] < 6 {
						f.Errorf("at most %d ran at once, want 6", f.most["''"])
					}

					got, _ := f.get(id)

					return map[string]any{"State": got.State, "Description": got.Description}
				},
			}
		},
	}
}

// TestCrashes kills, freezes and disconnects the conductor and the upgrades of 20 targets at their writes: at each write with
// SOAK_DURATION, otherwise at some of them. Each instance must be upgraded once, and never more at once than allowed.
func TestCrashes(t *testing.T) {
	t.Parallel()

	nth := 25
	if harness.SoakDuration(t) > 0 {
		nth = 1
	}

	crashtest.Sample(t, harness.Seed(t), nth, scenario())
}

// TestSchedule checks that nothing starts before the time of the order, and that the orchestration continues although a replica dies
// while it waits.
func TestSchedule(t *testing.T) {
	t.Parallel()

	crashtest.Sample(t, harness.Seed(t), 10, crashtest.Scenario[environment.Data]{
		Name: "schedule", Kind: environment.KindOrchestrate, Expected: "operations:\n- orchestrate succeeded\n",
		Open: func(t *testing.T) crashtest.Env[environment.Data] {
			t.Helper()

			f := newFixture(t, storagetest.SQLite(t), clock.RealClock{})
			f.fill(1)

			return crashtest.Env[environment.Data]{
				Store: f.operations,
				Processes: func(proxy *crashtest.Proxy) []process.Process[environment.Data] {
					return f.processes(proxied{f.Conductor, proxy})
				},
				Upstream: func() any { return nil },
				Script: func(run *crashtest.Run[environment.Data]) []string {
					run.InjectFaults()

					parameters := all(1)
					parameters.Strategy = fleet.Strategy{ScheduleTime: time.Now().Add(10 * time.Minute)}
					_, conductor := f.order(parameters)

					run.Sleep(9 * time.Minute)
					f.wantUpgrades(0)
					run.Await(conductor)
					f.wantUpgrades(1)

					return []string{conductor}
				},
			}
		},
	})
}
