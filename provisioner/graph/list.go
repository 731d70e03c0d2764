package graph

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/orders"
)

// defaultPage is the page size if the request sets `first` to null. It equals the default in the schema.
const defaultPage = 50

// Runtimes resolves Query.runtimes.
func (q query) Runtimes(ctx context.Context, filter *model.RuntimeFilter, first *int, after *string) (*model.RuntimePage, error) {
	given := ptr.Deref(filter, model.RuntimeFilter{})

	tenant, err := listingTenant(ctx, given.Tenant)
	if err != nil {
		return nil, err
	}

	list, err := q.service.ListRuntimes(ctx, orders.RuntimeFilter{
		ID: ptr.Deref(given.ID, ""), Tenant: tenant, SubAccount: tenancy.Label(ptr.Deref(given.SubAccount, "")),
		ShootName: ptr.Deref(given.ShootName, ""), Region: ptr.Deref(given.Region, ""),
		Kind: string(ptr.Deref(given.Operation, "")), State: storedState(given.State), Deleted: ptr.Deref(given.Deleted, false),
		Since: ptr.Deref(given.CreatedSince, time.Time{}), Until: ptr.Deref(given.CreatedUntil, time.Time{}),
	}, pageOf(ctx, "RuntimePage", first, after))
	if err != nil {
		return nil, explained(ctx, err)
	}

	page := &model.RuntimePage{Data: make([]*model.Runtime, 0, len(list.Runtimes)), PageInfo: pageInfo(list.Next), TotalCount: list.Total}

	for _, one := range list.Runtimes {
		page.Data = append(page.Data, &model.Runtime{
			ID: one.ID, ShootName: one.ShootName, Tenant: one.Tenant, SubAccount: one.SubAccount, Provider: one.Provider, Region: one.Region,
			CreatedAt: one.CreatedAt, DeletedAt: unlessZero(one.DeletedAt), LastOperation: listedOperation(one.Operation),
		})
	}

	return page, nil
}

// Operations resolves Query.operations.
func (q query) Operations(ctx context.Context, filter *model.OperationFilter, first *int, after *string) (*model.OperationPage, error) {
	given := ptr.Deref(filter, model.OperationFilter{})

	tenant, err := listingTenant(ctx, given.Tenant)
	if err != nil {
		return nil, err
	}

	list, err := q.service.ListOperations(ctx, orders.OperationFilter{
		Tenant: tenant, RuntimeID: ptr.Deref(given.RuntimeID, ""), ShootName: ptr.Deref(given.ShootName, ""), Region: ptr.Deref(given.Region, ""),
		Kind: string(ptr.Deref(given.Operation, "")), State: storedState(given.State),
		Unfinished: ptr.Deref(given.Unfinished, false), Stuck: ptr.Deref(given.Stuck, false),
		Since: ptr.Deref(given.CreatedSince, time.Time{}), Until: ptr.Deref(given.CreatedUntil, time.Time{}),
	}, pageOf(ctx, "OperationPage", first, after))
	if err != nil {
		return nil, explained(ctx, err)
	}

	page := &model.OperationPage{
		Data: make([]*model.Operation, 0, len(list.Operations)), PageInfo: pageInfo(list.Next), TotalCount: list.Total,
	}

	for _, one := range list.Operations {
		page.Data = append(page.Data, listedOperation(one))
	}

	return page, nil
}

// pageOf returns the page that the request selects. It sets Total only if the request selects totalCount. typeName is the GraphQL
// type of the page.
func pageOf(ctx context.Context, typeName string, first *int, after *string) orders.Page {
	page := orders.Page{Size: ptr.Deref(first, defaultPage), After: ptr.Deref(after, "")}

	for _, field := range graphql.CollectFieldsCtx(ctx, []string{typeName}) {
		page.Total = page.Total || field.Name == "totalCount"
	}

	return page
}

// pageInfo returns a PageInfo with the given cursor of the next page. The cursor is empty if there is no next page.
func pageInfo(next string) *model.PageInfo {
	if next == "" {
		return &model.PageInfo{}
	}

	return &model.PageInfo{EndCursor: &next, HasNextPage: true}
}

// listedOperation converts an operation in a list to its API type.
func listedOperation(listed orders.ListedOperation) *model.Operation {
	return &model.Operation{
		ID: listed.ID, RuntimeID: listed.RuntimeID, ShootName: listed.ShootName, Tenant: listed.Tenant,
		Operation: model.OperationType(listed.Kind), State: stateOf(listed.State), Message: listed.Message, Stage: listed.Stage,
		LastError: &model.LastError{
			ErrMessage: listed.Problem.ForOperators(), Reason: listed.Problem.Reason, Component: listed.Problem.Component,
		},
		CreatedAt: listed.CreatedAt, StartedAt: unlessZero(listed.StartedAt), FinishedAt: unlessZero(listed.FinishedAt),
	}
}

// storedState converts an API state to the engine state in which operations are stored. It is the inverse of stateOf and returns
// "" for nil.
func storedState(state *model.OperationState) process.State {
	if state == nil {
		return ""
	}

	for _, known := range []process.State{process.Pending, process.InProgress, process.Succeeded, process.Failed} {
		if stateOf(known) == *state {
			return known
		}
	}

	return process.State(*state) // cannot happen: gqlgen rejects unknown states
}

// unlessZero returns the time, or nil for the zero time.
func unlessZero(moment time.Time) *time.Time {
	if moment.IsZero() {
		return nil
	}

	return &moment
}
