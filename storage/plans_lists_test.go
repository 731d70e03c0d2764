package storage_test

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/labels"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// page is the page size of the operator API plus one. The API reads one more row to detect a next page.
const page = 101

// listCalls returns calls that read lists, with a frequent and an absent value for each filter.
func (s stores) listCalls() map[string]call {
	calls := map[string]call{}
	underWay := []process.State{process.Pending, process.InProgress, process.Canceling}

	for name, filter := range map[string]operations.Filter{
		"of all":         {},
		"of an instance": {InstanceID: "i10"},
		"of a kind":      {Kinds: []string{"provision"}},
		"of a rare kind": {Kinds: []string{"deprovision"}},
		"of no kind":     {Kinds: []string{"none"}},
		"ready":          {States: []process.State{process.Succeeded}},
		"failed":         {States: []process.State{process.Failed}},
		"canceled":       {States: []process.State{process.Canceled}},
		"pending":        {States: []process.State{process.Pending}},
		"in progress":    {States: []process.State{process.InProgress}},
		"canceling":      {States: []process.State{process.Canceling}},
		"unfinished":     {States: underWay},
		"ended badly":    {States: []process.State{process.Failed, process.Canceled}},
		"failed of kind": {States: []process.State{process.Failed}, Kinds: []string{"deprovision"}},
		"stuck":          {StuckAt: filledAt},
		"stuck of kind":  {StuckAt: filledAt, Kinds: []string{"provision"}},
		"of an hour":     {Since: filledAt.AddDate(0, -6, 0), Until: filledAt.AddDate(0, -6, 0).Add(time.Hour)},
		"of a tenant":    {Instances: runtimes.Filter{Tenant: "account-10"}.IDs()},
		"of no tenant":   {Instances: runtimes.Filter{Tenant: "none"}.IDs()},
		"of a Shoot":     {Instances: runtimes.Filter{ShootName: "c-10"}.IDs()},
		"of a region":    {Instances: runtimes.Filter{Region: "region-10"}.IDs(), States: underWay},
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

	for name, filter := range map[string]instances.Filter{
		"of all":          {},
		"of an ID":        {InstanceID: "i11"},
		"of some Shoots":  {ShootNames: []string{"shoot-10", "shoot-11"}},
		"of an account":   {GlobalAccountID: "account-10"},
		"of no account":   {GlobalAccountID: "none"},
		"of two accounts": {GlobalAccountIDs: []string{"account-10", "account-11"}},
		"of a subaccount": {SubAccountID: "subaccount-10"},
		"of a region":     {Region: "region-10"},
		"of a platform":   {Platform: "default"},
		"of no platform":  {Platform: "none"},
		"of its region":   {Region: "cf-10"},
		"of no region":    {Region: "none"},
		"of a plan":       {Plan: "aws"},
		"of no plan":      {Plan: "none"},
		"failed":          {States: []process.State{process.Failed, process.Canceled}},
		"being made":      {Kinds: []string{"provision"}, States: underWay},
		"ready":           {Kinds: []string{"provision", "update", "resume"}, States: []process.State{process.Succeeded}},
		"of a Shoot":      {ShootNames: []string{"shoot-10"}},
		"of a provider":   {Provider: "aws"},
		"of no provider":  {Provider: "none"},
		"of a runtime":    {RuntimeID: "r10"},
		"of a version":    {MaintenanceVersion: "1.0.0"},
		"moved":           {SubscriptionAccountID: "account-10"},
		"shared":          {SharedWith: "cf-two"},
		"of an hour":      {Since: filledAt.AddDate(0, -6, 0), Until: filledAt.AddDate(0, -6, 0).Add(time.Hour)},
		"expiring":        {ExpiresBefore: filledAt.AddDate(0, -9, 0)},
		"expired":         {Expired: true},
		"of a kind":       {Kinds: []string{"provision"}},
		"of a rare kind":  {Kinds: []string{"suspend"}},
		"of a service":    {ServiceID: "service"},
		"of no service":   {ServiceID: "none"},
		"of a dashboard":  {DashboardURL: "https://dashboard.example.com/1"},
		"of an operation": {OperationID: "p10"},
		"of a problem":    {Problem: "quota"},
		"failed so":       {Problem: "quota", States: []process.State{process.Failed, process.Canceled}},
		"changed":         {UpdatedSince: filledAt.AddDate(0, -1, 0)},
		"changed before":  {UpdatedBefore: filledAt.AddDate(0, -6, 0)},
		"not changed":     {UpdatedSince: filledAt},
		"protected":       {Protected: true},
		"oldest first":    {Sort: instances.Oldest},
		"oldest, next":    {Sort: instances.Oldest, Before: filledAt.AddDate(0, -6, 0), BeforeID: "i50000"},
		"by name":         {Sort: instances.ByName},
		"by name, next":   {Sort: instances.ByNameDescending, BeforeKey: "name 50000", BeforeID: "i50000"},
		"by plan":         {Sort: instances.ByPlan},
		"by plan, next":   {Sort: instances.ByPlanDescending, BeforeKey: "azure", Before: filledAt.AddDate(0, -6, 0), BeforeID: "i50000"},
		"by region":       {Sort: instances.ByRegion},
		"by region, next": {Sort: instances.ByRegionDescending, BeforeKey: "region-10", Before: filledAt.AddDate(0, -6, 0), BeforeID: "i50000"},
		"by account":      {Sort: instances.ByAccount},
		"by account next": {Sort: instances.ByAccountDescending, BeforeKey: "account-10", Before: filledAt.AddDate(0, -6, 0), BeforeID: "i50000"},
		"failed, by name": {Sort: instances.ByName, States: []process.State{process.Failed, process.Canceled}},
		"ready, by plan":  {Sort: instances.ByPlan, Kinds: []string{"provision", "update", "resume"}, States: []process.State{process.Succeeded}},
		"of a name":       {Name: "name 10"},
		"of a search":     {Search: "name 1000"},
		"of all names":    {Search: "name"},
		"of no search":    {Search: "none"},
		"of an ID search": {Search: "r10", Sort: instances.ByName},
		"found anywhere":  {Search: "ame 10", Anywhere: true},
		"found nowhere":   {Search: "none", Anywhere: true},
		"of a label":      {Labels: []labels.Condition{{Name: "ring", Value: "canary", Exact: true}, {Name: "team"}}},
		"of no label":     {Labels: []labels.Condition{{Name: "none"}}},
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

	for name, filter := range map[string]runtimes.Filter{
		"of all":         {},
		"with deleted":   {Deleted: true},
		"of an id":       {ID: "r10", Deleted: true},
		"of some ids":    {Among: []string{"r10", "r11"}},
		"of a tenant":    {Tenant: "account-10"},
		"of no tenant":   {Tenant: "none"},
		"of a Shoot":     {ShootName: "c-10"},
		"of old Shoots":  {ShootName: "c-10", Deleted: true},
		"of a region":    {Region: "region-10"},
		"of no region":   {Region: "none"},
		"of an hour":     {Since: filledAt.AddDate(0, -6, 0), Until: filledAt.AddDate(0, -6, 0).Add(time.Hour)},
		"failed":         {States: []process.State{process.Failed, process.Canceled}},
		"being created":  {Kinds: []string{"provision"}, States: underWay},
		"of both":        {Tenant: "account-10", States: underWay},
		"after a cursor": {Before: filledAt.AddDate(0, -6, 0), BeforeID: "r50000"},
		"deep":           {Offset: manyInstances / 2},
	} {
		filter.Limit = page
		calls["runtimes.List "+name] = func(ctx context.Context) error {
			_, err := s.runtimes.List(ctx, filter)

			return err
		}
		calls["runtimes.Count "+name] = func(ctx context.Context) error {
			_, err := s.runtimes.Count(ctx, filter)

			return err
		}
	}

	return calls
}
