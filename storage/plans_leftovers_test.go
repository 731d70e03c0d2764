package storage_test

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

func (s stores) leftoverCalls() map[string]call {
	list := func(filter leftovers.Filter) call {
		filter.Limit = page

		return func(ctx context.Context) error {
			_, err := s.leftovers.List(ctx, filter)

			return err
		}
	}

	return map[string]call{
		"leftovers.Add": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.leftovers.Add(ctx, tx, environment.Leftover{
				ID: "new", Instance: environment.Instance{ID: "i7"}, DataID: "new", NewestID: "new", DeletedAt: filledAt, RetryAt: filledAt,
			})
		}),
		"leftovers.Lock": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.leftovers.Lock(ctx, tx, "d100100")

			return err
		}),
		"leftovers.SetSteps": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.leftovers.SetSteps(ctx, tx, "d100100", []string{"Step"}, "d100100")
		}),
		"leftovers.SetCleanup": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.leftovers.SetCleanup(ctx, tx, "d100100", "d100101", filledAt)
		}),
		"leftovers.Remove": s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.leftovers.Remove(ctx, tx, "d100100") }),
		"leftovers.Due": func(ctx context.Context) error {
			_, err := s.leftovers.Due(ctx, filledAt.Add(-30*time.Minute), "", page)

			return err
		},
		"leftovers.OfShoots": func(ctx context.Context) error {
			_, err := s.leftovers.OfShoots(ctx, s.db.Reader(), []string{"c-100100", "c-100101"})

			return err
		},
		"leftovers.OfAccount": func(ctx context.Context) error {
			_, err := s.leftovers.OfAccount(ctx, s.db.Reader(), "account-10", page)

			return err
		},
		"leftovers.List ready":       list(leftovers.Filter{}),
		"leftovers.List a page":      list(leftovers.Filter{Before: filledAt.Add(-time.Hour), BeforeID: "d100100"}),
		"leftovers.List of accounts": list(leftovers.Filter{GlobalAccountID: "account-10"}),
		"leftovers.Count": func(ctx context.Context) error {
			_, err := s.leftovers.Count(ctx, leftovers.Filter{})

			return err
		},
		"leftovers.CountSteps": func(ctx context.Context) error {
			_, err := s.leftovers.CountSteps(ctx)

			return err
		},
	}
}

func (s stores) objectCalls() map[string]call {
	object := environment.OutsideObject{InstanceID: "i100", System: environment.SystemEDP, Kind: environment.KindDataTenant, Key: "subaccount-100"}
	cluster := environment.OutsideObject{InstanceID: "i100", System: environment.SystemReconciler, Kind: environment.KindCluster, Key: "r100"}
	renewal := outsideobjects.Renewal{Object: cluster, Now: filledAt, RetryAt: filledAt, Until: filledAt}

	by := process.Record{ID: "p100", Lease: process.Lease{Owner: "replica", Fence: 1}}

	return map[string]call{
		"objects.Configuration": func(ctx context.Context) error {
			_, err := s.objects.Configuration(ctx, cluster)

			return err
		},
		"objects.Set with a configuration": func(ctx context.Context) error {
			configured := cluster
			configured.Configuration, configured.Credential = "{}", environment.NewCredential(filledAt, filledAt)

			return s.objects.Set(ctx, by, configured, filledAt)
		},
		"objects.Remove with a configuration": func(ctx context.Context) error { return s.objects.Remove(ctx, by, cluster) },
		"objects.EndRenewal with a configuration": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.objects.EndRenewal(ctx, tx, renewal, outsideobjects.Result{DueAt: filledAt, IssuedAt: filledAt})
		}),
		"objects.Set": func(ctx context.Context) error { return s.objects.Set(ctx, by, object, filledAt) },
		"objects.Insert": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			adopted := object
			adopted.Kind = "adopted"

			return s.objects.Insert(ctx, tx, adopted, filledAt)
		}),
		"objects.Remove": func(ctx context.Context) error { return s.objects.Remove(ctx, by, object) },
		"objects.Abandoned": func(ctx context.Context) error {
			_, err := s.objects.Abandoned(ctx, "i100", page)

			return err
		},
		"objects.DueCredentials": func(ctx context.Context) error {
			_, err := s.objects.DueCredentials(ctx, []string{environment.SystemLifecycleManager, environment.SystemReconciler}, filledAt, page)

			return err
		},
		"objects.BeginRenewal": func(ctx context.Context) error {
			_, err := s.objects.BeginRenewal(ctx, renewal)

			return err
		},
		"objects.EndRenewal": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.objects.EndRenewal(ctx, tx, renewal, outsideobjects.Result{DueAt: filledAt})
		}),
		"objects.Reserve": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.objects.Reserve(ctx, tx, cluster, filledAt)

			return err
		}),
		"objects.RequestRenewal": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.objects.RequestRenewal(ctx, tx, "i100", []string{"lifecycle-manager", "reconciler"}, filledAt)
		}),
		"objects.Credentials": func(ctx context.Context) error {
			_, err := s.objects.Credentials(ctx, "", cluster, page)

			return err
		},
		"objects.Credentials of an instance": func(ctx context.Context) error {
			_, err := s.objects.Credentials(ctx, "i100", environment.OutsideObject{}, page)

			return err
		},
		"objects.CountCredentials": func(ctx context.Context) error {
			_, err := s.objects.CountCredentials(ctx, filledAt)

			return err
		},
		"objects.Drop": func(ctx context.Context) error { return s.objects.Drop(ctx, object) },
		"objects.OfInstance": func(ctx context.Context) error {
			_, err := s.objects.OfInstance(ctx, "i100")

			return err
		},
		"objects.Recorded": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.objects.Recorded(ctx, tx, "i100")

			return err
		}),
		"objects.OfInstances": func(ctx context.Context) error {
			_, err := s.objects.OfInstances(ctx, []string{"i100", "i101"})

			return err
		},
		"objects.Sharing": func(ctx context.Context) error {
			_, err := s.objects.Sharing(ctx, object)

			return err
		},
		"objects.Move": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.objects.Move(ctx, tx, "i101", environment.LeftoverKey("i101", "d101"))
		}),
		"objects.Return": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.objects.Return(ctx, tx, environment.LeftoverKey("i103", "d103"), "i103")
		}),
		"objects.RemoveAll": s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.objects.RemoveAll(ctx, tx, "i102") }),
		"objects.CountErasable": func(ctx context.Context) error {
			_, err := s.objects.CountErasable(ctx, "account-10")

			return err
		},
		"objects.Erase": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.objects.Erase(ctx, tx, "account-10")

			return err
		}),
	}
}
