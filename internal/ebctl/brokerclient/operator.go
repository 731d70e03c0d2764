package brokerclient

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// RuntimeFilter selects runtimes; empty fields select all.
type RuntimeFilter struct {
	InstanceID string
	Account    string
	SubAccount string
	Region     string
	Plan       string
	State      string
	// Cursor is where the last page ended.
	Cursor string
	// Total asks for the number of runtimes on all pages.
	Total bool
}

func (f RuntimeFilter) query() url.Values {
	return chosen(map[string]string{
		"instance_id": f.InstanceID, "account": f.Account, "subaccount": f.SubAccount,
		"region": f.Region, "plan": f.Plan, "state": f.State, "cursor": f.Cursor,
		"total": whenTrue(f.Total),
	})
}

// Runtimes returns one page of runtimes, the newest first.
func (c *Client) Runtimes(ctx context.Context, filter RuntimeFilter) (operatorapi.RuntimeList, error) {
	var list operatorapi.RuntimeList

	_, err := c.call(ctx, request{method: http.MethodGet, path: "/runtimes", query: filter.query()}, &list)

	return list, err
}

// AllRuntimes returns the runtimes of all pages, the newest first, until the first error.
func (c *Client) AllRuntimes(ctx context.Context, filter RuntimeFilter) iter.Seq2[operatorapi.Runtime, error] {
	return allPages(func(cursor string) ([]operatorapi.Runtime, string, error) {
		filter.Cursor, filter.Total = cursor, false // who has them all can count them
		page, err := c.Runtimes(ctx, filter)

		return page.Data, page.Cursor, err
	})
}

// OperationFilter selects operations; empty fields select all.
type OperationFilter struct {
	InstanceID string
	Kind       string
	State      string
	// Cursor is where the last page ended.
	Cursor string
	// Total asks for the number of operations on all pages.
	Total bool
}

func (f OperationFilter) query() url.Values {
	return chosen(map[string]string{
		"instance_id": f.InstanceID, "kind": f.Kind, "state": f.State, "cursor": f.Cursor, "total": whenTrue(f.Total),
	})
}

// Operations returns one page of operations without their timelines, the newest first.
func (c *Client) Operations(ctx context.Context, filter OperationFilter) (operatorapi.OperationList, error) {
	var list operatorapi.OperationList

	_, err := c.call(ctx, request{method: http.MethodGet, path: "/operations", query: filter.query()}, &list)

	return list, err
}

// AllOperations returns the operations of all pages, the newest first, until the first error.
func (c *Client) AllOperations(ctx context.Context, filter OperationFilter) iter.Seq2[operatorapi.Operation, error] {
	return allPages(func(cursor string) ([]operatorapi.Operation, string, error) {
		filter.Cursor, filter.Total = cursor, false // who has them all can count them
		page, err := c.Operations(ctx, filter)

		return page.Data, page.Cursor, err
	})
}

// AuditFilter selects entries of the audit trail; empty fields select all.
type AuditFilter struct {
	InstanceID string
	User       string
	Action     string
	// Since and Until are times as RFC 3339 has them.
	Since, Until string
	// Cursor is where the last page ended.
	Cursor string
}

// Audit returns one page of the audit trail, the newest first.
func (c *Client) Audit(ctx context.Context, filter AuditFilter) (operatorapi.AuditList, error) {
	var list operatorapi.AuditList

	_, err := c.call(ctx, request{method: http.MethodGet, path: "/audit", query: chosen(map[string]string{
		"instance_id": filter.InstanceID, "user": filter.User, "action": filter.Action,
		"since": filter.Since, "until": filter.Until, "cursor": filter.Cursor,
	})}, &list)

	return list, err
}

// AllAudit returns the entries of all pages, the newest first, until the first error.
func (c *Client) AllAudit(ctx context.Context, filter AuditFilter) iter.Seq2[operatorapi.AuditEntry, error] {
	return allPages(func(cursor string) ([]operatorapi.AuditEntry, string, error) {
		filter.Cursor = cursor
		page, err := c.Audit(ctx, filter)

		return page.Data, page.Cursor, err
	})
}

// Operation returns an operation with its timeline, and for how long the broker wants to be left alone before it is asked again:
// also beside an error.
func (c *Client) Operation(ctx context.Context, id string) (operatorapi.Operation, time.Duration, error) {
	var operation operatorapi.Operation

	got, err := c.call(ctx, request{method: http.MethodGet, path: joined([]string{"operations", id})}, &operation)

	return operation, got.retryAfter, err
}

// Expire has an instance expire: its runtime is removed, and it can only be deleted. The broker records who asked.
func (c *Client) Expire(ctx context.Context, instanceID string) (Accepted, error) {
	var expiration operatorapi.Expiration

	path := joined([]string{"expire", "service_instance", instanceID})
	_, err := c.call(ctx, request{method: http.MethodPut, path: path}, &expiration)

	return Accepted{Operation: expiration.Operation}, err
}

// AdminKubeconfig has a short-lived kubeconfig with every right made for the instance's runtime. The broker records who asked.
func (c *Client) AdminKubeconfig(ctx context.Context, instanceID string) (operatorapi.AdminKubeconfig, error) {
	var kubeconfig operatorapi.AdminKubeconfig

	path := joined([]string{"runtimes", instanceID, "adminkubeconfig"})
	_, err := c.call(ctx, request{method: http.MethodPost, path: path}, &kubeconfig)

	return kubeconfig, err
}
