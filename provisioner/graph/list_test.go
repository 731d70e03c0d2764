package graph_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	stored "github.com/environment-broker/environment-broker/storage/runtimes"
)

// startServerFor serves the API to a client with the given role.
func startServerFor(t *testing.T, runtimes graph.Service, role auth.Role) *httptest.Server {
	t.Helper()

	api := graph.NewHandler(graph.Options{Service: runtimes, Log: logging.Discard(), Endpoint: "/graphql"})
	server := httptest.NewServer(as(role, api))
	t.Cleanup(server.Close)

	return server
}

func TestTenantOfLists(t *testing.T) {
	t.Parallel()

	const (
		missing = "the tenant header is missing: a list without it requires the operator role"
		another = "the tenant header contains a different account than the filter"
		long    = "the tenant and sub-account headers must each have at most 255 characters"
	)

	hashed := "sha256-3973e022e93220f9212c18d0d0c543ae" // of "-"

	cases := map[string]struct {
		reason  string
		role    auth.Role
		header  string
		filter  string
		want    string
		problem string
	}{
		"broker":             {reason: "a list needs an owner", role: auth.RoleOSB, problem: missing},
		"viewer":             {reason: "viewers do not see all tenants over GraphQL", role: auth.RoleViewer, problem: missing},
		"broker with filter": {reason: "a filter is no header", role: auth.RoleOSB, filter: "acme", problem: missing},
		"tenant":             {reason: "the header selects", role: auth.RoleOSB, header: "acme", want: "acme"},
		"same tenant":        {reason: "the filter may repeat the header", role: auth.RoleOSB, header: "acme", filter: "acme", want: "acme"},
		"other tenant":       {reason: "the filter does not widen the header", role: auth.RoleOSB, header: "acme", filter: "other", problem: another},
		"label":              {reason: "IDs are compared as labels", role: auth.RoleOSB, header: "-", filter: hashed, want: hashed},
		"operator":           {reason: "an operator sees all tenants", role: auth.RoleOperator},
		"admin":              {reason: "an admin is an operator", role: auth.RoleAdmin},
		"one tenant":         {reason: "an operator can select one", role: auth.RoleOperator, filter: "-", want: hashed},
		"operator as tenant": {reason: "the header counts for operators too", role: auth.RoleOperator, header: "acme", want: "acme"},
		"long header":        {reason: "IDs have a limit", role: auth.RoleOSB, header: strings.Repeat("x", 256), problem: long},
		"operator's mistake": {reason: "both cannot hold", role: auth.RoleOperator, header: "acme", filter: "other", problem: another},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got []string

			server := startServerFor(t, runtimes{
				listRuntimes: func(filter orders.RuntimeFilter, _ orders.Page) (orders.RuntimeList, error) {
					got = append(got, filter.Tenant)

					return orders.RuntimeList{}, nil
				},
				listOperations: func(filter orders.OperationFilter, _ orders.Page) (orders.OperationList, error) {
					got = append(got, filter.Tenant)

					return orders.OperationList{}, nil
				},
			}, c.role)

			want := []string{c.want}
			if c.problem != "" {
				want = nil
			}

			for _, field := range []string{"runtimes", "operations"} {
				got = nil

				request := exchange{query: `{ ` + field + ` { pageInfo { hasNextPage } } }`}
				if c.filter != "" {
					request.query = `{ ` + field + `(filter: {tenant: "` + c.filter + `"}) { pageInfo { hasNextPage } } }`
				}

				if c.header != "" {
					request.headers = map[string]string{"tenant": c.header}
				}

				_, body := post(t, server, request)
				if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(body, c.problem) {
					t.Errorf("%s, %s: -want +got\n%s\n%s", field, c.reason, diff, body)
				}
			}
		})
	}
}

func TestFiltersOfLists(t *testing.T) {
	t.Parallel()

	since, until := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2030, 1, 3, 2, 4, 5, 0, time.UTC)

	type asked struct {
		Runtimes   orders.RuntimeFilter
		Operations orders.OperationFilter
		Page       orders.Page
	}

	cases := map[string]struct {
		reason, query string
		want          asked
	}{
		"runtimes": {
			"every filter is passed on", `{ runtimes(first: 7, after: "cursor", filter: {id: "rt", subAccount: "sub", shootName: "c-1", region: "eu",
				operation: Hibernate, state: InProgress, deleted: true, createdSince: "2030-01-02T03:04:05Z", createdUntil: "2030-01-03T03:04:05+01:00"
			}) { totalCount } }`,
			asked{Runtimes: orders.RuntimeFilter{
				Tenant: "acme", SubAccount: "sub", ID: "rt", ShootName: "c-1", Region: "eu", Kind: operation.KindHibernate, State: process.InProgress,
				Deleted: true, Since: since, Until: until,
			}, Page: orders.Page{Size: 7, After: "cursor", Total: true}},
		},
		"operations": {
			"every filter is passed on", `{ operations(first: 7, after: "cursor", filter: {runtimeID: "rt", shootName: "c-1", region: "eu",
				operation: Hibernate, state: Failed, unfinished: true, stuck: true, createdSince: "2030-01-02T03:04:05Z",
				createdUntil: "2030-01-03T03:04:05+01:00"}) { totalCount } }`,
			asked{Operations: orders.OperationFilter{
				Tenant: "acme", RuntimeID: "rt", ShootName: "c-1", Region: "eu", Kind: operation.KindHibernate, State: process.Failed,
				Unfinished: true, Stuck: true, Since: since, Until: until,
			}, Page: orders.Page{Size: 7, After: "cursor", Total: true}},
		},
		"defaults": {
			"a page has fifty entries, and its total is not counted", `{ runtimes { data { id } } }`,
			asked{Runtimes: orders.RuntimeFilter{Tenant: "acme"}, Page: orders.Page{Size: 50}},
		},
		"null": {
			"null is the default", `{ operations(first: null, after: null, filter: null) { data { id } } }`,
			asked{Operations: orders.OperationFilter{Tenant: "acme"}, Page: orders.Page{Size: 50}},
		},
		"total in a fragment": {
			"fragments are followed", `{ operations { ...total } } fragment total on OperationPage { n: totalCount }`,
			asked{Operations: orders.OperationFilter{Tenant: "acme"}, Page: orders.Page{Size: 50, Total: true}},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got asked

			server := startServer(t, runtimes{
				listRuntimes: func(filter orders.RuntimeFilter, page orders.Page) (orders.RuntimeList, error) {
					got = asked{Runtimes: filter, Page: page}

					return orders.RuntimeList{}, nil
				},
				listOperations: func(filter orders.OperationFilter, page orders.Page) (orders.OperationList, error) {
					got = asked{Operations: filter, Page: page}

					return orders.OperationList{}, nil
				},
			})

			_, body := post(t, server, asTenant(c.query))
			if diff := cmp.Diff(c.want, got); diff != "" || strings.Contains(body, "errors") {
				t.Errorf("%s: -want +got\n%s\n%s", c.reason, diff, body)
			}
		})
	}
}

func TestAnswersOfLists(t *testing.T) {
	t.Parallel()

	created, ended := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2030, 1, 2, 3, 9, 0, 0, time.UTC)
	failed := orders.ListedOperation{
		Status: operation.Status{
			ID: "op", RuntimeID: "rt", Kind: operation.KindProvision, State: process.Failed, Message: "no quota",
			Problem: process.Problem{Message: "no quota", Reason: "ERR_QUOTA", Component: "gardener"},
		},
		Stage: "CreatingCluster", Tenant: "acme", ShootName: "c-1", CreatedAt: created, StartedAt: created, FinishedAt: ended,
	}

	server := startServer(t, runtimes{
		listRuntimes: func(orders.RuntimeFilter, orders.Page) (orders.RuntimeList, error) {
			return orders.RuntimeList{Next: "further", Total: 3, Runtimes: []orders.ListedRuntime{{
				Runtime: stored.Runtime{
					ID: "rt", Tenant: "acme", SubAccount: "sub", ShootName: "c-1", Provider: "aws", Region: "eu", CreatedAt: created, DeletedAt: ended,
				},
				Operation: failed,
			}}}, nil
		},
		listOperations: func(_ orders.OperationFilter, page orders.Page) (orders.OperationList, error) {
			if page.After != "" {
				return orders.OperationList{}, failure.New(failure.Invalid, "after: must be an endCursor of this list").At("after")
			}

			return orders.OperationList{Operations: []orders.ListedOperation{
				failed,
				{Status: operation.Status{Kind: operation.KindHibernate, State: process.Pending}, CreatedAt: created},
			}}, nil
		},
	})

	cases := map[string]struct{ reason, query, want string }{
		"runtimes": {
			"a page with a next page",
			`{ runtimes { totalCount pageInfo { endCursor hasNextPage } data { id tenant subAccount shootName provider region createdAt deletedAt
				lastOperation { id state } } } }`,
			`{"data":{"runtimes":{"totalCount":3,"pageInfo":{"endCursor":"further","hasNextPage":true},"data":[{"id":"rt","tenant":"acme",` +
				`"subAccount":"sub","shootName":"c-1","provider":"aws","region":"eu","createdAt":"2030-01-02T03:04:05Z",` +
				`"deletedAt":"2030-01-02T03:09:00Z","lastOperation":{"id":"op","state":"Failed"}}]}}}`,
		},
		"operations": {
			"the last page; times that have not come are null",
			`{ operations { pageInfo { endCursor hasNextPage } data { id runtimeID shootName tenant operation state message stage createdAt startedAt
				finishedAt lastError { errMessage reason component } } } }`,
			`{"data":{"operations":{"pageInfo":{"endCursor":null,"hasNextPage":false},"data":[{"id":"op","runtimeID":"rt","shootName":"c-1",` +
				`"tenant":"acme","operation":"Provision","state":"Failed","message":"no quota","stage":"CreatingCluster",` +
				`"createdAt":"2030-01-02T03:04:05Z","startedAt":"2030-01-02T03:04:05Z","finishedAt":"2030-01-02T03:09:00Z",` +
				`"lastError":{"errMessage":"no quota","reason":"ERR_QUOTA","component":"gardener"}},{"id":"","runtimeID":"","shootName":"",` +
				`"tenant":"","operation":"Hibernate","state":"Pending","message":"","stage":"","createdAt":"2030-01-02T03:04:05Z",` +
				`"startedAt":null,"finishedAt":null,"lastError":{"errMessage":"","reason":"","component":""}}]}}}`,
		},
		"cursor": {
			"the error names the argument", `{ operations(after: "x") { totalCount } }`,
			`{"errors":[{"message":"after: must be an endCursor of this list","path":["operations"],"extensions":{"error_code":400,` +
				`"error_component":"provisioner","error_fields":["after"],"error_reason":"err_provisioner_bad_request"}}],"data":null}`,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, got := post(t, server, asTenant(c.query))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}
