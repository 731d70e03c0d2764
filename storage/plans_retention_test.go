package storage_test

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// retentionCalls returns the calls that remove operations, and the calls that find the operations that are still needed.
func (s stores) retentionCalls() map[string]call {
	var instanceIDs, operationIDs, orchestrationIDs []string

	for i := range 25 {
		instanceIDs = append(instanceIDs, fmt.Sprint("i", 99_990+i))
		operationIDs = append(operationIDs, fmt.Sprint("p", 99_990+i))
		orchestrationIDs = append(orchestrationIDs, fmt.Sprint("o", i))
	}

	among := func(query func(ctx context.Context, tx storage.Tx, ids []string) ([]string, error), ids []string) call {
		return func(ctx context.Context) error {
			_, err := query(ctx, s.db.Reader(), ids)

			return err
		}
	}

	removal := operations.Removal{
		Subjects: func(_ context.Context, _ storage.Tx, keys []string) (map[string]operations.Subject, error) {
			subjects := map[string]operations.Subject{}
			for _, key := range keys {
				subjects[key] = operations.Gone
			}

			return subjects, nil
		},
		Named: s.runtimes.UnreportedAmong, Removed: s.runtimes.Forget,
	}

	return map[string]call{
		"auditlog.RemoveOperations": func(ctx context.Context) error {
			examined, removed, err := s.auditlog.RemoveOperations(ctx, removal, filledAt.AddDate(2, 0, 0), page)
			if err == nil && (examined != page || removed == 0) {
				err = fmt.Errorf("examined %d and removed %d operations", examined, removed)
			}

			return err
		},
		"instances.Among":                   among(s.instances.Among, instanceIDs),
		"bindings.Keys":                     among(s.bindings.Keys, instanceIDs),
		"objects.Among":                     among(s.objects.Among, instanceIDs),
		"orchestrations.NotEnded":           among(s.orchestrations.NotEnded, orchestrationIDs),
		"orchestrations.UnfinishedUpgrades": among(s.orchestrations.UnfinishedUpgrades, operationIDs),
		"runtimes.Present":                  among(s.runtimes.Present, instanceIDs),
		"runtimes.UnreportedAmong":          among(s.runtimes.UnreportedAmong, operationIDs),
		"runtimes.Forget": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.runtimes.Forget(ctx, tx, []string{"p5"}, []string{"r100500"})
		}),
		"leftovers.OfInstances": func(ctx context.Context) error {
			_, err := s.leftovers.OfInstances(ctx, s.db.Reader(), instanceIDs)

			return err
		},
	}
}
