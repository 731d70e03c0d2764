package orders

import (
	"context"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// maxPage is the maximum number of entries on a page. It bounds the duration and the memory of a request.
const maxPage = 100

// Page selects a page of a list. Entries are sorted by the time at which they were accepted, newest first.
type Page struct {
	// Size is the number of entries, from 1 to 100.
	Size int
	// After is the Next of the previous page, or empty for the first page.
	After string
	// Total requests the number of entries on all pages.
	Total bool
}

// RuntimeFilter selects runtimes; empty fields select all.
type RuntimeFilter struct {
	// Tenant is the label for the account's ID; see Caller. Empty selects the runtimes of all tenants: the caller checks whether
	// the client may see them.
	Tenant, SubAccount    string
	ID, ShootName, Region string
	// Kind and State are the public kind and state of the newest operation.
	Kind  string
	State process.State
	// Deleted includes deleted runtimes.
	Deleted bool
	// Since (inclusive) and Until (exclusive) limit the time at which the runtime was ordered.
	Since, Until time.Time
}

// OperationFilter selects operations; empty fields select all.
type OperationFilter struct {
	// Tenant is the label for the account's ID; see Caller. Empty selects the operations of all tenants, as in RuntimeFilter.
	Tenant                       string
	RuntimeID, ShootName, Region string
	// Kind and State are the names that clients see, not the stored names; see package operation.
	Kind  string
	State process.State
	// Unfinished selects operations that are pending, in progress or canceling.
	Unfinished bool
	// Stuck selects operations that need the attention of an operator; see operations.Filter.
	Stuck bool
	// Since (inclusive) and Until (exclusive) limit the time at which the operation was accepted.
	Since, Until time.Time
}

// ListedOperation is an operation in a list, with its runtime.
type ListedOperation struct {
	operation.Status

	Stage             string
	Tenant, ShootName string
	// StartedAt and FinishedAt are zero until the operation starts and ends.
	CreatedAt, StartedAt, FinishedAt time.Time
}

// ListedRuntime is a runtime in a list, without its configuration, and its newest operation.
type ListedRuntime struct {
	runtimes.Runtime

	Operation ListedOperation
}

// RuntimeList is a page of runtimes. Next is empty on the last page. Total is 0 unless it was requested.
type RuntimeList struct {
	Runtimes []ListedRuntime
	Next     string
	Total    int
}

// OperationList is a page of operations. Next is empty on the last page. Total is 0 unless it was requested.
type OperationList struct {
	Operations []ListedOperation
	Next       string
	Total      int
}

// ListRuntimes returns a page of runtimes with their newest operations. It does not decrypt configurations, so it also lists
// runtimes whose encryption key is lost. The error is failure.Invalid for an invalid page or filter.
func (s *Service) ListRuntimes(ctx context.Context, filter RuntimeFilter, page Page) (RuntimeList, error) {
	after, err := page.check(filter.ID, filter.Tenant, filter.SubAccount, filter.ShootName, filter.Region)
	if err != nil {
		return RuntimeList{}, err
	}

	query := runtimes.Filter{
		ID: filter.ID, Tenant: filter.Tenant, SubAccount: filter.SubAccount, ShootName: filter.ShootName, Region: filter.Region,
		Deleted: filter.Deleted, Kinds: kindsOf(filter.Kind), States: statesOf(filter.State), Since: filter.Since, Until: filter.Until,
		Before: after.At, BeforeID: after.ID, Limit: page.Size + 1,
	}

	found, err := s.Runtimes.List(ctx, query)
	if err != nil {
		return RuntimeList{}, unavailable(err)
	}

	var list RuntimeList

	for _, one := range found[:min(len(found), page.Size)] {
		list.Runtimes = append(list.Runtimes, ListedRuntime{Runtime: one.Runtime, Operation: listed(one.Operation, one.Runtime)})
	}

	if len(found) > page.Size {
		last := list.Runtimes[page.Size-1]
		list.Next = storage.Cursor{At: last.CreatedAt, ID: last.ID}.String()
	}

	if page.Total {
		list.Total, err = s.Runtimes.Count(ctx, query)
	}

	return list, unavailable(err)
}

// ListOperations returns a page of operations, including operations of deleted runtimes. The error is failure.Invalid for an
// invalid page or filter.
func (s *Service) ListOperations(ctx context.Context, filter OperationFilter, page Page) (OperationList, error) {
	after, err := page.check(filter.RuntimeID, filter.Tenant, filter.ShootName, filter.Region)
	if err != nil {
		return OperationList{}, err
	}

	query := operations.Filter{
		InstanceID: filter.RuntimeID,
		Instances:  runtimes.Filter{Tenant: filter.Tenant, ShootName: filter.ShootName, Region: filter.Region}.IDs(),
		Kinds:      kindsOf(filter.Kind), States: statesOf(filter.State), Since: filter.Since, Until: filter.Until,
		Before: after.At, BeforeID: after.ID, Limit: page.Size + 1,
	}

	if filter.Stuck {
		query.StuckAt = s.Clock.Now()
	}

	if filter.Unfinished {
		if query.States = unfinished(query.States); len(query.States) == 0 {
			return OperationList{}, nil // the requested state is final, so no operation matches
		}
	}

	found, err := s.Operations.List(ctx, query)
	if err != nil {
		return OperationList{}, unavailable(err)
	}

	list, err := s.withRuntimes(ctx, found[:min(len(found), page.Size)])
	if err != nil {
		return OperationList{}, unavailable(err)
	}

	if len(found) > page.Size {
		last := list.Operations[page.Size-1]
		list.Next = storage.Cursor{At: last.CreatedAt, ID: last.ID}.String()
	}

	if page.Total {
		list.Total, err = s.Operations.Count(ctx, query)
	}

	return list, unavailable(err)
}

// withRuntimes returns the operations with the tenants and Shoot names of their runtimes.
func (s *Service) withRuntimes(ctx context.Context, records []process.Record) (OperationList, error) {
	ids := make([]string, 0, len(records))
	for _, record := range records {
		ids = append(ids, record.InstanceID)
	}

	owners, err := s.Runtimes.Summaries(ctx, ids)
	if err != nil {
		return OperationList{}, err
	}

	var list OperationList
	for _, record := range records {
		list.Operations = append(list.Operations, listed(record, owners[record.InstanceID]))
	}

	return list, nil
}

// listed returns the list entry for an operation and its runtime.
func listed(record process.Record, runtime runtimes.Runtime) ListedOperation {
	return ListedOperation{
		Status: operation.StatusOf(record), Stage: record.Stage, Tenant: runtime.Tenant, ShootName: runtime.ShootName,
		CreatedAt: record.CreatedAt, StartedAt: record.StartedAt, FinishedAt: record.FinishedAt,
	}
}

// kindsOf returns the stored kinds of a public kind, or nil for the empty kind, which selects all kinds.
func kindsOf(public string) []string {
	if public == "" {
		return nil
	}

	return operation.KindsOf(public)
}

// statesOf returns the stored states of a public state, or nil for the empty state, which selects all states.
func statesOf(public process.State) []process.State {
	if public == "" {
		return nil
	}

	return operation.StatesOf(public)
}

// unfinished returns the given states without the final ones. If no states are given, it returns all unfinished states.
func unfinished(states []process.State) []process.State {
	if len(states) == 0 {
		return []process.State{process.Pending, process.InProgress, process.Canceling}
	}

	return slices.DeleteFunc(states, process.State.Terminal)
}

// check validates the page and the given strings from the filter, and returns the position after which the page starts. Its error
// is failure.Invalid.
func (p Page) check(texts ...string) (storage.Cursor, error) {
	if p.Size < 1 || p.Size > maxPage {
		return storage.Cursor{}, failure.New(failure.Invalid, "first: must be between 1 and %d", maxPage).At("first")
	}

	for _, text := range texts {
		if !storage.IsText(text) {
			return storage.Cursor{}, failure.New(failure.Invalid, "filter: a value contains a NUL character or is not valid UTF-8").At("filter")
		}
	}

	if p.After == "" {
		return storage.Cursor{}, nil
	}

	after, valid := storage.ParseCursor(p.After)
	if !valid {
		return storage.Cursor{}, failure.New(failure.Invalid, "after: must be an endCursor of this list").At("after")
	}

	return after, nil
}
