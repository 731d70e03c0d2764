package storage_test

import (
	"context"
	"maps"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

// orchestrationCalls returns calls to the orchestrations store. The orchestration o1 is running and has 20,000 targets. o5 to o1000
// have ended, and have about 100 targets each.
func (s stores) orchestrationCalls() map[string]call {
	const id = "o1"

	target := environment.Target{OrchestrationID: id, InstanceID: "i4", OperationID: "p4", State: environment.TargetPending, NotBefore: filledAt}

	calls := map[string]call{
		"orchestrations.Insert": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.Insert(ctx, tx, environment.Orchestration{ID: "new", CreatedAt: filledAt, UpdatedAt: filledAt})
		}),
		"orchestrations.Get": func(ctx context.Context) error {
			_, err := s.orchestrations.Get(ctx, s.db.Reader(), id)

			return err
		},
		"orchestrations.Lock": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Lock(ctx, tx, id)

			return err
		}),
		"orchestrations.Conduct": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Conduct(ctx, tx, process.Record{
				ID: "p30", InstanceID: environment.OrchestrationKey(id), Lease: process.Lease{Owner: "replica", Fence: 1},
			})

			return err
		}),
		"orchestrations.SetState": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.SetState(ctx, tx, id, environment.OrchestrationInProgress, "runs", filledAt)
		}),
		"orchestrations.WakeConductor": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.WakeConductor(ctx, tx, id, filledAt)

			return err
		}),
		"orchestrations.Unfinished": func(ctx context.Context) error {
			_, err := s.orchestrations.Unfinished(ctx)

			return err
		},
		"orchestrations.HasConductor": func(ctx context.Context) error {
			_, err := s.orchestrations.HasConductor(ctx, s.db.Reader(), id)

			return err
		},
		"orchestrations.List ready": func(ctx context.Context) error {
			_, _, err := s.orchestrations.List(ctx, nil, page, 0)

			return err
		},
		"orchestrations.AddTargets": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			added := target
			added.InstanceID, added.OperationID = "new", "new"

			return s.orchestrations.AddTargets(ctx, tx, []environment.Target{added})
		}),
		"orchestrations.SetTarget": s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.orchestrations.SetTarget(ctx, tx, target) }),
	}

	maps.Copy(calls, s.targetCalls(id))
	maps.Copy(calls, s.planCalls(id))
	maps.Copy(calls, s.waveCalls(id))
	maps.Copy(calls, s.windowCalls(id, target))
	maps.Copy(calls, s.undoCalls(id))
	maps.Copy(calls, s.ownerTimeCalls(id))

	return calls
}

// ownerTimeCalls returns the calls for times that owners choose.
func (s stores) ownerTimeCalls(id string) map[string]call {
	return map[string]call{
		"orchestrations.WaitingFor": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.WaitingFor(ctx, tx, "i4")

			return err
		}),
		"orchestrations.ChooseTime": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.ChooseTime(ctx, tx, id, "i4", filledAt, "owner")
		}),
	}
}

// undoCalls returns the calls for the undo of an orchestration.
func (s stores) undoCalls(id string) map[string]call {
	return map[string]call{
		"orchestrations.Upgraded": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Upgraded(ctx, tx, "o6")

			return err
		}),
		"orchestrations.UpgradeOf": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.UpgradeOf(ctx, tx, id, "i4")

			return err
		}),
		"orchestrations.UnfinishedUndo": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.UnfinishedUndo(ctx, tx, id)

			return err
		}),
	}
}

// waveCalls returns the calls for waves and failure gates.
func (s stores) waveCalls(id string) map[string]call {
	return map[string]call{
		"orchestrations.Wave": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Wave(ctx, tx, "o6", 1)

			return err
		}),
		"orchestrations.Wave of many targets": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Wave(ctx, tx, id, 1)

			return err
		}),
		"orchestrations.SetWave": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.SetWave(ctx, tx, id, 2, filledAt, filledAt)
		}),
		"orchestrations.AcceptFailures": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.AcceptFailures(ctx, tx, "o6")
		}),
		"orchestrations.CommonFailure": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.CommonFailure(ctx, tx, "o6")

			return err
		}),
		"orchestrations.Starts": func(ctx context.Context) error {
			_, err := s.orchestrations.Starts(ctx, s.db.Reader(), "o6")

			return err
		},
		"orchestrations.CountTargets": func(ctx context.Context) error {
			_, err := s.orchestrations.CountTargets(ctx, s.db.Reader(), []string{"o6", "o7"})

			return err
		},
		"orchestrations.WaveStats": func(ctx context.Context) error {
			_, err := s.orchestrations.WaveStats(ctx, s.db.Reader(), "o6")

			return err
		},
		"orchestrations.Counts of many targets": func(ctx context.Context) error {
			_, _, err := s.orchestrations.Counts(ctx)

			return err
		},
	}
}

// windowCalls returns the calls for maintenance windows and deadlines.
func (s stores) windowCalls(id string, target environment.Target) map[string]call {
	return map[string]call{
		"orchestrations.EndedWindows": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.EndedWindows(ctx, tx, id, filledAt)

			return err
		}),
		"orchestrations.MoveToWindow": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.MoveToWindow(ctx, tx, id, "daily region-1", filledAt, filledAt, filledAt)
		}),
		"orchestrations.CancelLate": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.CancelLate(ctx, tx, "o6", "late", filledAt)
		}),
		"orchestrations.SetWindows": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.SetWindows(ctx, tx, target, []string{"i4", "i6"})
		}),
		"orchestrations.Unstarted": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Unstarted(ctx, tx, id, "reason")

			return err
		}),
		"orchestrations.ShootWindows": func(ctx context.Context) error {
			_, err := s.orchestrations.ShootWindows(ctx, s.db.Reader(), []string{"i4", "i6"})

			return err
		},
		"orchestrations.SetShootWindow": func(ctx context.Context) error {
			return s.orchestrations.SetShootWindow(ctx, "i4", fleet.WindowTimes{}, filledAt)
		},
		"orchestrations.AddShootWindows": func(ctx context.Context) error {
			_, err := s.orchestrations.AddShootWindows(ctx, filledAt, "i4")

			return err
		},
		"orchestrations.DueShootWindows": func(ctx context.Context) error {
			_, err := s.orchestrations.DueShootWindows(ctx, filledAt, page)

			return err
		},
		"orchestrations.PostponeShootWindow": func(ctx context.Context) error {
			_, err := s.orchestrations.PostponeShootWindow(ctx, orchestrations.DueWindow{InstanceID: "i4", At: storage.At(filledAt)}, filledAt)

			return err
		},
		"orchestrations.RemoveShootWindow": func(ctx context.Context) error { return s.orchestrations.RemoveShootWindow(ctx, "i4") },
		"orchestrations.Repeat": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.Repeat(ctx, tx, target, "another")
		}),
	}
}

// planCalls returns the calls for plans.
func (s stores) planCalls(id string) map[string]call {
	return map[string]call{
		"orchestrations.Pending": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Pending(ctx, tx, "o6")

			return err
		}),
		"orchestrations.LeaveOut": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.LeaveOut(ctx, tx, id, "changed", []string{"i4", "i6"})
		}),
		"orchestrations.Apply": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.Apply(ctx, tx, id, "user", "Plan applied", filledAt)
		}),
		"orchestrations.PlannedBefore": func(ctx context.Context) error {
			_, err := s.orchestrations.PlannedBefore(ctx, filledAt)

			return err
		},
		"orchestrations.RemoveTargets": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.RemoveTargets(ctx, tx, "o6")
		}),
	}
}

// targetCalls returns the calls that choose and count the targets of an orchestration.
func (s stores) targetCalls(id string) map[string]call {
	return map[string]call{
		"orchestrations.Settle": s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.orchestrations.Settle(ctx, tx, id) }),
		"orchestrations.Running": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Running(ctx, tx, id)

			return err
		}),
		"orchestrations.Due": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Due(ctx, tx, id, orchestrations.DueFilter{
				Wave: 1, Now: filledAt, WithoutProviders: []string{"aws"}, WithoutRegions: []string{"region-3"}, Limit: page,
			})

			return err
		}),
		"orchestrations.NextDue": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.NextDue(ctx, tx, id, 1)

			return err
		}),
		"orchestrations.CancelPending": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.CancelPending(ctx, tx, "o6", "a test")
		}),
		"orchestrations.Failed": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Failed(ctx, tx, id, nil)

			return err
		}),
		"orchestrations.Failed of operations": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Failed(ctx, tx, id, []string{"p10", "p20"})

			return err
		}),
		"orchestrations.Newer": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Newer(ctx, tx, "o6")

			return err
		}),
		"orchestrations.Repeated": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.orchestrations.Repeated(ctx, tx, "o6", []string{"p10"})

			return err
		}),
		"orchestrations.Retry": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.orchestrations.Retry(ctx, tx, id, map[string]string{"i4": "another"}, false, filledAt)
		}),
		"orchestrations.ListTargets": func(ctx context.Context) error {
			_, _, err := s.orchestrations.ListTargets(ctx, "o6", orchestrations.Filter{Limit: page})

			return err
		},
		"orchestrations.ListTargets of an operation": func(ctx context.Context) error {
			_, _, err := s.orchestrations.ListTargets(ctx, id, orchestrations.Filter{OperationID: "p10", Limit: 1})

			return err
		},
		"orchestrations.Stats": func(ctx context.Context) error {
			_, err := s.orchestrations.Stats(ctx, s.db.Reader(), "o6")

			return err
		},
		"orchestrations.Stats of many targets": func(ctx context.Context) error {
			_, err := s.orchestrations.Stats(ctx, s.db.Reader(), id)

			return err
		},
	}
}
