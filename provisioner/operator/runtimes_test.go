package operator_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func (f *fixture) ids(query string) []string {
	f.Helper()

	ids := []string{}
	for _, runtime := range get[operatorapi.RuntimeList](f, "/runtimes"+query).Data {
		ids = append(ids, runtime.InstanceID)
	}

	return ids
}

func TestRoles(t *testing.T) {
	const none, refused, unknown = http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound

	f := newFixture(t, storagetest.SQLite(t))

	for _, c := range []struct {
		method, path                            string
		nobody, broker, viewer, operator, admin int
	}{
		{"GET", "/runtimes", none, refused, 200, 200, 200},
		{"GET", "/runtimes/x", none, refused, unknown, unknown, unknown},
		{"GET", "/operations", none, refused, 200, 200, 200},
		{"GET", "/operations/x", none, refused, unknown, unknown, unknown},
		{"POST", "/operations/x/cancel", none, refused, refused, 400, 400},
		{"POST", "/operations/x/retry", none, refused, refused, 400, 400},
		{"POST", "/operations/x/skip", none, refused, refused, 400, 400},
		{"GET", "/audit", none, refused, refused, refused, 200},
		{"GET", "/audit/x", none, refused, refused, refused, unknown},
		{"GET", "/openapi.yaml", 200, 200, 200, 200, 200},
		{"GET", "/runtimes/x/bindings", unknown, unknown, unknown, unknown, unknown}, // of the broker alone
		{"GET", "/operations/x/cancel", 405, 405, 405, 405, 405},
	} {
		for user, want := range map[string]int{
			"": c.nobody, "broker": c.broker, "viewer": c.viewer, "operator": c.operator, "admin": c.admin,
		} {
			f.do(user, c.method, c.path, "", want)
		}
	}
}

func TestListRuntimes(t *testing.T) {
	onEach(t, func(f *fixture) {
		f.order("first", process.Succeeded)
		f.order("second", process.InProgress, func(r *runtimes.Runtime) { r.Tenant, r.Region = "other", "eu-west-1" })
		f.order("third", process.Failed, func(r *runtimes.Runtime) { r.SubAccount = "" })
		f.order("gone", process.Succeeded, func(r *runtimes.Runtime) { r.ShootName, r.DeletedAt = "c-first-too", start.Add(time.Hour) })
		f.operate("gone", operation.KindDeprovisionNoInstall, process.Succeeded)
		f.operate("first", operation.KindHibernate, process.Succeeded)

		for query, want := range map[string][]string{
			"":                                   {"third", "second", "first"},
			"?account=other":                     {"second"},
			"?subaccount=sub":                    {"second", "first"},
			"?name=c-first":                      {"first"},
			"?name=c-first-too":                  {}, // deleted
			"?instance_id=gone":                  {"gone"},
			"?region=eu-west-1":                  {"second"},
			"?state=provisioning":                {"second"},
			"?state=failed":                      {"third"},
			"?state=suspended":                   {"first"},
			"?state=deleted":                     {"gone"},
			"?state=succeeded":                   {},
			"?state=provisioning&account=acme":   {},
			"?page_size=2":                       {"third", "second"},
			"?page_size=2&page=2":                {"first"},
			"?account=acme&region=eu-central-1":  {"third", "first"},
			"?state=deleted&name=c-first-too":    {"gone"},
			"?instance_id=first&state=suspended": {"first"},
		} {
			if diff := cmp.Diff(want, f.ids(query)); diff != "" {
				f.Errorf("%q: -want +got\n%s", query, diff)
			}
		}

		page := get[operatorapi.RuntimeList](f, "/runtimes?page_size=2&total=true")
		if page.TotalCount == nil || *page.TotalCount != 3 || page.Cursor == "" {
			f.Errorf("the first page has the position %+v", page.Page)
		}

		if diff := cmp.Diff([]string{"first"}, f.ids("?cursor="+page.Cursor)); diff != "" {
			f.Errorf("the page after a cursor: -want +got\n%s", diff)
		}
	})
}

func TestInvalidListsOfRuntimes(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))

	for query, want := range map[string]string{
		"?plan=aws":      "plan", // only the broker has plans
		"?state=bogus":   "provisioning, succeeded, updating",
		"?page_size=101": "page_size must be a number from 1 to 100.",
		"?cursor=x":      "cursor is invalid",
	} {
		got := read[operatorapi.Error](f, f.do("viewer", "GET", "/runtimes"+query, "", http.StatusBadRequest))
		if !strings.Contains(got.Description, want) {
			t.Errorf("%s: got %q, want %q", query, got.Description, want)
		}
	}
}

func TestGetRuntime(t *testing.T) {
	onEach(t, func(f *fixture) {
		id := f.order("first", process.Succeeded)
		created := f.clock.Now()

		raw := f.do("viewer", "GET", "/runtimes/first", "", http.StatusOK)
		got := read[operatorapi.Runtime](f, raw)

		want := operatorapi.Runtime{
			InstanceID: "first", RuntimeID: "first", GlobalAccountID: "acme", SubAccountID: "sub", Provider: "aws", Region: "eu-central-1",
			Name: "c-first", ShootName: "c-first", Resolved: got.Resolved,
			Status: operatorapi.RuntimeStatus{
				State: operatorapi.RuntimeStateSucceeded, CreatedAt: created, ModifiedAt: created, LastOperation: got.Status.LastOperation,
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			f.Errorf("the runtime: -want +got\n%s", diff)
		}

		if last := got.Status.LastOperation; last.ID != id || last.InstanceName != "c-first" || last.Timeline != nil {
			f.Errorf("the newest operation is %+v", last)
		}

		for _, part := range []string{`"kubernetesVersion":"1.35.4"`, `"jane@example.com"`, `"version":"2.20.0"`} {
			if !strings.Contains(raw, part) {
				f.Errorf("the order lacks %s: %s", part, raw)
			}
		}

		if strings.Contains(raw, "hush") {
			f.Errorf("the response has a secret: %s", raw)
		}

		f.do("viewer", "GET", "/runtimes/missing", "", http.StatusNotFound)
	})
}
