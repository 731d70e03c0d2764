package service

import (
	"context"
	"slices"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// NewRemoval returns the retention rules for the operations in the tables.
func NewRemoval(tables Tables) operations.Removal {
	return stores{
		instances: tables.Instances, bindings: tables.Bindings, leftovers: tables.Leftovers, objects: tables.Objects,
		orchestrations: tables.Orchestrations,
	}.removal()
}

// removal returns the retention rules for the broker's operations.
func (s stores) removal() operations.Removal {
	return operations.Removal{
		Subjects: s.subjects, Named: s.orchestrations.UnfinishedUpgrades,
		Lasting: []string{environment.KindProvision, environment.KindSuspend, environment.KindResume},
		Ending:  []string{environment.KindDeprovision},
		Latest:  [][]string{{environment.KindDeprovision}, environment.PlatformKinds()},
	}
}

// subjects returns, for each operation key, whether the operations with this key must be kept. All operations of existing
// bindings, of leftovers and of unfinished orchestrations are kept; there are only a few of them. All operations of an instance
// with leftovers are kept, because a cleanup uses the data of the deletion. All operations of a deleted instance with recorded
// objects in other systems are kept, because an erasure of account data finds the objects through the operations.
func (s stores) subjects(ctx context.Context, tx storage.Tx, keys []string) (map[string]operations.Subject, error) {
	var instanceIDs, owners, orchestrationIDs []string

	for _, key := range keys {
		if id, is := environment.OrchestrationOf(key); is {
			orchestrationIDs = append(orchestrationIDs, id)
		} else if id, _, is := environment.BindingOf(key); is {
			owners = append(owners, id)
		} else if id, _, is := environment.LeftoverOf(key); is {
			owners = append(owners, id)
		} else {
			instanceIDs = append(instanceIDs, key)
		}
	}

	instances, err := s.instances.Among(ctx, tx, instanceIDs)
	if err != nil {
		return nil, err
	}

	needed, err := s.needed(ctx, tx, slices.Concat(instanceIDs, owners), orchestrationIDs)
	if err != nil {
		return nil, err
	}

	objects, err := s.objects.Among(ctx, tx, keys)
	if err != nil {
		return nil, err
	}

	subjects := map[string]operations.Subject{}

	for _, key := range keys {
		switch {
		case slices.Contains(needed, key):
			subjects[key] = operations.Needed
		case slices.Contains(instances, key):
			subjects[key] = operations.Present
		case slices.Contains(objects, key):
			subjects[key] = operations.Needed
		default:
			subjects[key] = operations.Gone
		}
	}

	return subjects, nil
}

// needed returns the keys whose operations must all be kept: the keys of the instances' bindings and leftovers, the IDs of
// instances with leftovers, and the keys of orchestrations that have not ended.
func (s stores) needed(ctx context.Context, tx storage.Tx, instanceIDs, orchestrationIDs []string) ([]string, error) {
	needed, err := s.bindings.Keys(ctx, tx, instanceIDs)
	if err != nil {
		return nil, err
	}

	leftovers, err := s.leftovers.OfInstances(ctx, tx, instanceIDs)
	if err != nil {
		return nil, err
	}

	for id, keys := range leftovers {
		needed = append(append(needed, id), keys...)
	}

	unfinished, err := s.orchestrations.NotEnded(ctx, tx, orchestrationIDs)
	for _, id := range unfinished {
		needed = append(needed, environment.OrchestrationKey(id))
	}

	return needed, err
}
