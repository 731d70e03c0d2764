package storage_test

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// page is the page size of the operator API plus one. The API reads one more row to detect a next page.
const page = 101

// listCalls returns calls of the lists, with a frequent and an absent value for each filter.
func (s stores) listCalls() map[string]call {
	calls := map[string]call{}

	for name, filter := range map[string]operations.Filter{
		"of all":         {},
		"of an instance": {InstanceID: "i10"},
		"of a kind":      {Kind: "provision"},
		"of a rare kind": {Kind: "deprovision"},
		"of no kind":     {Kind: "none"},
		"ready":          {State: process.Succeeded},
		"failed":         {State: process.Failed},
		"canceled":       {State: process.Canceled},
		"pending":        {State: process.Pending},
		"in progress":    {State: process.InProgress},
		"canceling":      {State: process.Canceling},
		"failed of kind": {State: process.Failed, Kind: "deprovision"},
		"after a cursor": {Before: filledAt.AddDate(0, -6, 0), BeforeID: "p50000"},
		"deep":           {Offset: manyInstances / 2},
	} {
		filter.Limit = page
		calls["operations.List "+name] = func(ctx context.Context) error {
			_, err := s.operations.List(ctx, filter)

			return err
		}
		calls["operations.Count "+name] = func(ctx context.Context) error {
			_, err := s.operations.Count(ctx, filter)

			return err
		}
	}

	underWay := []process.State{process.Pending, process.InProgress, process.Canceling}

	for name, filter := range map[string]instances.Filter{
		"of all":          {},
		"of an ID":        {InstanceID: "i11"},
		"of an account":   {GlobalAccountID: "account-10"},
		"of no account":   {GlobalAccountID: "none"},
		"of a subaccount": {SubAccountID: "subaccount-10"},
		"of a region":     {Region: "region-10"},
		"of a platform":   {Region: "cf-10"},
		"of no region":    {Region: "none"},
		"of a plan":       {Plan: "aws"},
		"of no plan":      {Plan: "none"},
		"failed":          {States: []process.State{process.Failed, process.Canceled}},
		"being made":      {Kinds: []string{"provision"}, States: underWay},
		"ready":           {Kinds: []string{"provision", "update", "resume"}, States: []process.State{process.Succeeded}},
		"suspended":       {Suspended: true, Kinds: []string{"suspend"}, States: []process.State{process.Succeeded}},
		"being changed":   {Kinds: []string{"update"}, States: underWay},
		"being deleted":   {Kinds: []string{"deprovision"}, States: underWay},
		"after a cursor":  {Before: filledAt.AddDate(0, -6, 0), BeforeID: "i50000"},
		"deep":            {Offset: manyInstances / 2},
	} {
		filter.Limit = page
		calls["instances.List "+name] = func(ctx context.Context) error {
			_, err := s.instances.List(ctx, filter)

			return err
		}
		calls["instances.Count "+name] = func(ctx context.Context) error {
			_, err := s.instances.Count(ctx, filter)

			return err
		}
	}

	return calls
}
