package storage_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/accounts"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/keyrotation"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/notifications"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

// stores contains the stores of both services, on one database.
type stores struct {
	db         *storage.DB
	keys       *secret.Keyring
	operations *operations.Store
	instances  *instances.Store
	bindings   *bindings.Store
	runtimes   *runtimes.Store
	auditlog   *auditlog.Store
	endpoints  *endpoints.Store
	accounts   *accounts.Store
	leftovers  *leftovers.Store
	objects    *outsideobjects.Store
	events     *instanceevents.Store
	eventlog   *eventlog.Store
	// notifications stores the messages to the notification service.
	notifications *notifications.Store
	webhooks      *webhooks.Store
	// orchestrations stores the orchestrations and their targets.
	orchestrations *orchestrations.Store
	// archive is a folder for archives of the audit log.
	archive string
}

// call calls one method of a store. Maps of calls have the keys `store.Method`, or `store.Method variant` if a method has several
// calls.
type call func(ctx context.Context) error

// inTx returns a call that runs in a transaction.
func (s stores) inTx(work func(ctx context.Context, tx storage.Tx) error) call {
	return func(ctx context.Context) error {
		return s.db.InTx(ctx, func(tx storage.Tx) error { return work(ctx, tx) })
	}
}

// calls returns calls to all store methods that send a statement. The envelopes of the filled rows cannot be decrypted, so calls
// that decrypt a row fail after they have executed their statement.
func (s stores) calls() map[string]call {
	all := map[string]call{}

	for _, group := range []map[string]call{s.operationCalls(), s.engineCalls(), s.listCalls(), s.instanceCalls(), s.bindingCalls(), s.endpointCalls(), s.accountCalls(), s.leftoverCalls(), s.objectCalls(), s.eventCalls(), s.eventlogCalls(), s.webhookCalls(), s.notificationCalls(), s.orchestrationCalls(), s.runtimeCalls(), s.auditlogCalls(), s.retentionCalls(), s.eraseCalls()} {
		maps.Copy(all, group)
	}

	return all
}

// begin returns the call that adds an instance with its first operation.
func (s stores) begin(id string) call {
	return func(ctx context.Context) error {
		insertion, err := s.instances.Insertion(environment.Instance{ID: id, ShootName: id, CreatedAt: filledAt, UpdatedAt: filledAt})
		if err != nil {
			return err
		}

		return s.db.ExecBatch(ctx, insertion, s.operations.First(process.New{
			ID: id, Kind: "provision", InstanceID: id, Tenant: "account-7", Payload: json.RawMessage(`{}`), At: filledAt,
		}))
	}
}

func (s stores) operationCalls() map[string]call {
	accept := s.inTx(func(ctx context.Context, tx storage.Tx) error {
		err := s.operations.Accept(ctx, tx, process.New{
			ID: "new", Kind: "provision", InstanceID: "i7", Tenant: "account-7", Payload: json.RawMessage(`{}`), At: filledAt,
		})

		return err
	})

	return map[string]call{
		"operations.Accept": accept,
		"operations.Cancel": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.operations.Cancel(ctx, tx, "i107", "a test", filledAt)

			return err
		}),
		"operations.Cancel except upgrades": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.operations.Cancel(ctx, tx, "i107", "a test", filledAt, "upgradeKyma")

			return err
		}),
		"operations.SetVisibleTo": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.operations.SetVisibleTo(ctx, tx, []string{"i107", environment.BindingKey("i107", "b1"), environment.BindingKey("i107", "b2")}, "beta")
		}),
		"operations.Get": func(ctx context.Context) error {
			_, err := s.operations.Get(ctx, s.db.Reader(), "p10")

			return err
		},
		"operations.OfInstance": func(ctx context.Context) error {
			_, err := s.operations.OfInstance(ctx, s.db.Reader(), "i10")

			return err
		},
		"operations.Latest": func(ctx context.Context) error {
			_, err := s.operations.Latest(ctx, s.db.Reader(), "i10", "provision", "deprovision")

			return err
		},
		"operations.Timeline": func(ctx context.Context) error {
			_, err := s.operations.Timeline(ctx, "p10")

			return err
		},
		"operations.Next": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return storage.Apply(ctx, tx, s.operations.Next(process.New{
				ID: "next", Kind: "provision", InstanceID: "i8", Tenant: "account-7", Payload: json.RawMessage(`{}`), At: filledAt,
			}))
		}),
		"operations.Polled": func(ctx context.Context) error {
			_, err := s.operations.Polled(ctx, s.db.Reader(), "p10")

			return err
		},
		"operations.Payload": func(ctx context.Context) error {
			_, err := s.operations.Payload(ctx, s.db.Reader(), "new")

			return err
		},
		"operations.CancelOne": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.operations.CancelOne(ctx, tx, "p1106", "a test", filledAt)

			return err
		}),
		"operations.RecordRetry": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.operations.RecordRetry(ctx, tx, "p1", "a test", filledAt)
		}),
		"operations.Resume": func(ctx context.Context) error {
			_, err := s.operations.Resume(ctx, "provisioner", filledAt)

			return err
		},
		"operations.Skip": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.operations.Skip(ctx, tx, "p11", process.Skip{Step: "step", Reason: "a test"}, filledAt)

			return err
		}),
		"operations.ChangedSince": func(ctx context.Context) error {
			_, err := s.operations.ChangedSince(ctx, filledAt.Add(-time.Minute), 500)

			return err
		},
		"operations.Wake": func(ctx context.Context) error {
			_, err := s.operations.Wake(ctx, []string{"event-1008", "event-2008"}, filledAt)

			return err
		},
		"operations.RemoveTimelines": func(ctx context.Context) error {
			_, err := s.operations.RemoveTimelines(ctx, filledAt, filledAt, 50)

			return err
		},
	}
}

// engineCalls returns the calls that an engine makes periodically.
func (s stores) engineCalls() map[string]call {
	return map[string]call{
		"instances.Durations": func(ctx context.Context) error {
			_, err := s.instances.Durations(ctx)

			return err
		},
		"operations.StepTimes": func(ctx context.Context) error {
			_, err := s.operations.StepTimes(ctx, []string{"op-1", "op-2"})

			return err
		},
		"operations.QueueDepths": func(ctx context.Context) error {
			_, err := s.operations.QueueDepths(ctx, time.Now())

			return err
		},
		"operations.UnfinishedKinds": func(ctx context.Context) error {
			_, err := s.operations.UnfinishedKinds(ctx)

			return err
		},
		"operations.ExpirePending": s.expire(filledAt.Add(-48 * time.Hour)),
		"operations.Claim due":     s.claim(process.Due{Kind: "provision"}),
		"operations.Claim pending": s.claim(process.Due{Kind: "provision", Pending: true}),
		"operations.Due": func(ctx context.Context) error {
			_, err := s.operations.Due(ctx, []string{"provision", "deprovision", "update"}, filledAt)

			return err
		},
		"operations.Renew": func(ctx context.Context) error {
			leased := []process.LeasedOperation{{OperationID: "p10", Fence: 1, Stage: "stage", Step: "step", StepBegan: filledAt, Changed: true}}
			_, err := s.operations.Renew(ctx, process.Renewal{Owner: "replica", Until: filledAt, Operations: leased})

			return err
		},
		"operations.Save": func(ctx context.Context) error {
			attempt := process.Attempt{Stage: "stage", Step: "step", Number: 4, First: filledAt, Last: filledAt}
			_, err := s.operations.Save(ctx, process.Progress{
				Record: process.Record{
					ID: "p10", State: process.InProgress, Payload: json.RawMessage(`{}`), NextRun: filledAt,
					Lease: process.Lease{Owner: "replica", Until: filledAt, Fence: 1},
				},
				Failed: []process.Attempt{attempt}, Cleared: []process.Attempt{attempt},
				Timeline: []process.Entry{{Stage: "stage", Step: "step", Attempt: 5, Began: filledAt, End: filledAt, Outcome: process.Waiting}},
				Release:  true, Now: filledAt,
			})

			return err
		},
		"keyrotation.Rotate": func(ctx context.Context) error {
			logger, _ := logtest.NewNullLogger()
			columns := []storage.SealedColumn{operations.Sealed(), instances.Sealed(), bindings.Sealed(), runtimes.Sealed(), endpoints.Sealed(), outsideobjects.Sealed()}

			return keyrotation.New(keyrotation.Options{
				DB: s.db, Keys: s.keys, Columns: columns, Clock: noPauseClock{}, Log: logger, Metrics: prometheus.NewRegistry(),
			}).Rotate(ctx)
		},
	}
}

// noPauseClock is the real clock, except that its timers expire immediately.
type noPauseClock struct{ clock.RealClock }

func (h noPauseClock) NewTimer(time.Duration) clock.Timer { return h.RealClock.NewTimer(0) }

func (s stores) claim(due process.Due) call {
	return func(ctx context.Context) error {
		_, err := s.operations.Claim(ctx, process.Claim{
			Due: due, Owner: "other", Limit: 60, Now: filledAt, Until: filledAt.Add(6 * time.Second),
		})

		return err
	}
}

func (s stores) expire(before time.Time) call {
	return func(ctx context.Context) error {
		_, err := s.operations.ExpirePending(ctx, process.Expiry{
			Before: before, Now: filledAt, Limit: 100, Problem: process.Problem{Message: "late"},
		})

		return err
	}
}

func (s stores) instanceCalls() map[string]call {
	instance := environment.Instance{ID: "i10", ShootName: "c-10"}

	return map[string]call{
		"instances.Insertion": s.begin("begun"),
		"operations.First":    s.begin("begun too"),
		"instances.Get": func(ctx context.Context) error {
			_, err := s.instances.Get(ctx, s.db.Reader(), "new")

			return err
		},
		"instances.Owner": func(ctx context.Context) error {
			_, err := s.instances.Owner(ctx, s.db.Reader(), "i10")

			return err
		},
		"instances.Polled": func(ctx context.Context) error {
			_, _, err := s.instances.Polled(ctx, s.db.Reader(), "i10", "p10")

			return err
		},
		"instances.SetPlatforms": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			instance, err := s.instances.Get(ctx, tx, "new")
			if err != nil {
				return err
			}

			return s.instances.SetPlatforms(ctx, tx, instance)
		}),
		"instances.Exists": func(ctx context.Context) error {
			_, err := s.instances.Exists(ctx, s.db.Reader(), "i10")

			return err
		},
		"instances.GetWithNewest": func(ctx context.Context) error {
			_, _, err := s.instances.GetWithNewest(ctx, s.db.Reader(), "new", "provision", "deprovision")

			return err
		},
		"instances.Summaries": func(ctx context.Context) error {
			_, err := s.instances.Summaries(ctx, []string{"i10", "i11"})

			return err
		},
		"instances.GetAll": func(ctx context.Context) error {
			_, _, err := s.instances.GetAll(ctx, s.db.Reader(), []string{"i10", "i11"})

			return err
		},
		"instances.Labels": func(ctx context.Context) error {
			_, err := s.instances.Labels(ctx, s.db.Reader(), "i10", "i11")

			return err
		},
		"instances.SetLabels": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.instances.SetLabels(ctx, tx, "i12", map[string]string{"ring": "canary", "team": "a"})
		}),
		"instances.Touch": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.instances.Touch(ctx, tx, "i10", filledAt)

			return err
		}),
		"instances.Update": s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.instances.Update(ctx, tx, instance) }),
		"instances.WithRuntime": func(ctx context.Context) error {
			_, err := s.instances.WithRuntime(ctx, "i100", page)

			return err
		},
		"instances.OfSubaccounts": func(ctx context.Context) error {
			_, err := s.instances.OfSubaccounts(ctx, []string{"subaccount-1", "subaccount-2"})

			return err
		},
		"instances.LockQuotas": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.instances.LockQuotas(ctx, tx, instances.QuotaGroup{GlobalAccountID: "account-10"}, instances.QuotaGroup{Region: "region-10"})
		}),
		"instances.Usage": func(ctx context.Context) error {
			account, region := instances.QuotaGroup{GlobalAccountID: "account-10"}, instances.QuotaGroup{Region: "region-10"}

			for _, usage := range []instances.Usage{
				{Equal: instances.QuotaColumns{Account: true}, Of: account},
				{Equal: instances.QuotaColumns{Account: true}, Of: account, PlanIDs: []string{"plan-1"}, Regions: []string{"region-10"}},
				{Equal: instances.QuotaColumns{Subaccount: true}, Of: instances.QuotaGroup{SubAccountID: "subaccount-10"}},
				{Equal: instances.QuotaColumns{Region: true}, Of: region},
				{Equal: instances.QuotaColumns{Region: true, Plan: true}, Of: instances.QuotaGroup{Region: "region-10", PlanID: "plan-1"}},
				{Regions: []string{"region-10", "region-11"}, PlanIDs: []string{"plan-1", "plan-2"}},
				{By: instances.QuotaColumns{Account: true}, Accounts: []string{"account-10", "account-11"}, Limit: page},
			} {
				if _, err := s.instances.Usage(ctx, s.db.Reader(), usage); err != nil {
					return err
				}
			}

			return nil
		},
		"instances.Usage of all": func(ctx context.Context) error {
			for _, usage := range []instances.Usage{
				{},
				{PlanIDs: []string{"plan-1"}},
				{By: instances.QuotaColumns{Account: true}, Limit: page},
				{By: instances.QuotaColumns{Account: true, Plan: true, Region: true}, PlanIDs: []string{"plan-1"}, Limit: page},
			} {
				if _, err := s.instances.Usage(ctx, s.db.Reader(), usage); err != nil {
					return err
				}
			}

			return nil
		},
		"instances.Expiring": func(ctx context.Context) error {
			_, err := s.instances.Expiring(ctx, filledAt, "", page)

			return err
		},
		"instances.Lock": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.instances.Lock(ctx, tx, "i10")

			return err
		}),
		"instances.SetDashboardURL": func(ctx context.Context) error {
			return s.instances.SetDashboardURL(ctx, process.Record{ID: "p10"}, instance, "other")
		},
		"instances.SetRuntime": func(ctx context.Context) error {
			return s.instances.SetRuntime(ctx, process.Record{ID: "p10"}, instance, "other")
		},
		"instances.Hold": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.instances.Hold(ctx, tx, environment.Instance{ID: "i10", ShootName: "c-other"}, filledAt)
			if errors.Is(err, storage.ErrNotFound) {
				return nil // the ID belongs to another instance, so the row is not decrypted
			}

			return err
		}),
		"instances.Holder": func(ctx context.Context) error {
			_, err := s.instances.Holder(ctx, s.db.Reader(), instances.Claimed{
				Exclusive: "plan-1:account-7", GlobalAccountID: "account-7", PlanID: "plan-1", Except: "new",
			})

			return err
		},
		"instances.FeedCursor": func(ctx context.Context) error {
			_, err := s.instances.FeedCursor(ctx)

			return err
		},
		"instances.SaveFeedCursor": func(ctx context.Context) error { return s.instances.SaveFeedCursor(ctx, "place") },
		"instances.Delete":         s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.instances.Delete(ctx, tx, instance) }),
	}
}

func (s stores) runtimeCalls() map[string]call {
	registration := runtimes.Registration{Tenant: "account-10", Label: "label-10", OperationID: "p10", HeldUntil: storage.At(filledAt)}

	return map[string]call{
		"runtimes.Insert": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.runtimes.Insert(ctx, tx, runtimes.Runtime{ID: "new", ShootName: "new", Configuration: json.RawMessage(`{}`), CreatedAt: filledAt})

			return err
		}),
		"runtimes.Get": func(ctx context.Context) error {
			_, err := s.runtimes.Get(ctx, s.db.Reader(), "new")

			return err
		},
		"runtimes.Exists": func(ctx context.Context) error {
			_, err := s.runtimes.Exists(ctx, s.db.Reader(), "r10")

			return err
		},
		"runtimes.Summaries": func(ctx context.Context) error {
			_, err := s.runtimes.Summaries(ctx, []string{"r10", "r11", "r100001"})

			return err
		},
		"operations.InsertSucceeded": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.operations.InsertSucceeded(ctx, tx, process.New{
				ID: "restored", Kind: "provision", InstanceID: "i8", Tenant: "account-7", Payload: json.RawMessage(`{}`), At: filledAt,
			})
		}),
		"operations.InsertEnded": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.operations.InsertEnded(ctx, tx, process.New{
				ID: "ended", Kind: "provision", InstanceID: "i8", Tenant: "account-7", Payload: json.RawMessage(`{}`), At: filledAt,
			}, operations.Ending{State: process.Failed, At: filledAt})
		}),
		"runtimes.Tenants": func(ctx context.Context) error {
			_, err := s.runtimes.Tenants(ctx, "account-1", page)

			return err
		},
		"runtimes.UnsettledLabels": func(ctx context.Context) error {
			_, err := s.runtimes.UnsettledLabels(ctx, "account-1", []string{"a", "b"})

			return err
		},
		"runtimes.WithoutRegion": func(ctx context.Context) error {
			_, err := s.runtimes.WithoutRegion(ctx, "", page)

			return err
		},
		"runtimes.SetRegion": func(ctx context.Context) error { return s.runtimes.SetRegion(ctx, "r10", "aws", "region-10") },
		"runtimes.Lock":      s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.runtimes.Lock(ctx, tx, "r10") }),
		"runtimes.DeletedAmong": func(ctx context.Context) error {
			_, err := s.runtimes.DeletedAmong(ctx, []string{"r10", "r11", "r100001"})

			return err
		},
		"runtimes.PinRelease": func(ctx context.Context) error {
			_, err := s.runtimes.PinRelease(ctx, "registry.example.com/kyma", "10.0.0", "sha256:0", filledAt)

			return err
		},
		"runtimes.ReleaseDigest": func(ctx context.Context) error {
			_, err := s.runtimes.ReleaseDigest(ctx, "registry.example.com/kyma", "10.0.0")

			return err
		},
		"runtimes.OfShoot": func(ctx context.Context) error {
			_, err := s.runtimes.OfShoot(ctx, s.db.Reader(), "new")

			return err
		},
		"runtimes.Reconfigure": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.runtimes.Reconfigure(ctx, tx, runtimes.Runtime{ID: "r10", Configuration: json.RawMessage(`{}`)})
		}),
		"runtimes.Reassign": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.runtimes.Reassign(ctx, tx, "account-10", "key-10", "p11")
		}),
		"runtimes.Configured": func(ctx context.Context) error {
			return s.runtimes.Configured(ctx, runtimes.Runtime{ID: "r10", Configuration: json.RawMessage(`{}`)}, 1)
		},
		"runtimes.MarkDeleted": func(ctx context.Context) error { return s.runtimes.MarkDeleted(ctx, "r10", filledAt) },
		"runtimes.Recall": func(ctx context.Context) error {
			_, err := s.runtimes.Recall(ctx, s.db.Reader(), "account-10", "key-10")

			return err
		},
		"runtimes.IntendRegistration": func(ctx context.Context) error {
			_, err := s.runtimes.IntendRegistration(ctx, "account-10", "label-10", filledAt)

			return err
		},
		"runtimes.AcceptRegistration": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.runtimes.AcceptRegistration(ctx, tx, registration, filledAt)
		}),
		"runtimes.UnreportedFailures": func(ctx context.Context) error {
			_, err := s.runtimes.UnreportedFailures(ctx, 10)

			return err
		},
		"runtimes.FailureReported": func(ctx context.Context) error { return s.runtimes.FailureReported(ctx, registration) },
		"runtimes.HoldRegistration": func(ctx context.Context) error {
			_, err := s.runtimes.HoldRegistration(ctx, filledAt, filledAt, filledAt.Add(time.Minute))

			return err
		},
		"runtimes.SettleRegistration": func(ctx context.Context) error { return s.runtimes.SettleRegistration(ctx, registration) },
		"runtimes.Remember": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.runtimes.Remember(ctx, tx, "account-10", "new", "p10", filledAt)

			return err
		}),
	}
}
