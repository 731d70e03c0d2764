package operator_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

func TestRuntime(t *testing.T) {
	b := newBench(t)
	createdAt := b.clock.Now().Add(time.Second)
	operation := b.instance("one", process.InProgress)

	want := operatorapi.RuntimeList{
		Page: operatorapi.Page{Count: 1},
		Data: []operatorapi.Runtime{{
			InstanceID: "one", RuntimeID: "runtime-one", GlobalAccountID: "ga", SubAccountID: "sa", Provider: "aws",
			Region: "eu-central-1", SubAccountRegion: "cf-eu10", Name: "name-one", ShootName: "c-one",
			ServiceClassID: "service", ServicePlanID: "plan-id", ServicePlanName: "aws",
			Status: operatorapi.RuntimeStatus{
				State: operatorapi.RuntimeStateProvisioning, CreatedAt: createdAt, ModifiedAt: createdAt,
				LastOperation: operatorapi.Operation{
					ID: operation, InstanceID: "one", Kind: "provision", State: "in progress", Description: "provision of one",
					Stages: []string{"start", "create_runtime"}, CreatedAt: createdAt, UpdatedAt: createdAt, StartedAt: createdAt,
				},
			},
		}},
	}
	if diff := cmp.Diff(want, list[operatorapi.RuntimeList](b, "/runtimes")); diff != "" {
		b.Errorf("list: -want +got\n%s", diff)
	}
}

func TestStatesOfRuntimes(t *testing.T) {
	b := newBench(t)

	b.instance("pending", process.Pending)
	b.instance("running", process.InProgress)
	b.instance("ready", process.Succeeded)
	b.instance("failed", process.Failed)
	b.instance("canceled", process.Canceled)
	b.instance("leaving", process.Succeeded)
	b.operation("leaving", environment.KindDeprovision, process.InProgress)
	b.instance("changing", process.Succeeded)
	b.operation("changing", environment.KindUpdate, process.InProgress)
	b.instance("changed", process.Succeeded)
	b.operation("changed", environment.KindUpdate, process.Succeeded)
	b.instance("upgrading", process.Succeeded)
	b.operation("upgrading", environment.KindUpgradeKyma, process.InProgress)
	b.instance("upgraded", process.Succeeded)
	b.operation("upgraded", environment.KindUpgradeCluster, process.Succeeded)
	b.instance("suspending", process.Succeeded)
	b.operation("suspending", environment.KindSuspend, process.Pending)
	b.instance("suspended", process.Succeeded)
	b.operation("suspended", environment.KindSuspend, process.Succeeded)
	b.suspend("suspended")
	b.instance("resuming", process.Succeeded)
	b.operation("resuming", environment.KindSuspend, process.Succeeded)
	b.suspend("resuming")
	b.operation("resuming", environment.KindResume, process.InProgress)
	b.instance("resumed", process.Succeeded)
	b.operation("resumed", environment.KindResume, process.Succeeded)
	b.instance("staying", process.Succeeded)
	b.operation("staying", environment.KindDeprovision, process.Failed)

	want := map[operatorapi.RuntimeState][]string{
		operatorapi.RuntimeStateProvisioning:   {"running", "pending"},
		operatorapi.RuntimeStateSucceeded:      {"resumed", "upgraded", "changed", "ready"},
		operatorapi.RuntimeStateUpdating:       {"changing"},
		operatorapi.RuntimeStateUpgrading:      {"upgrading"},
		operatorapi.RuntimeStateSuspending:     {"suspending"},
		operatorapi.RuntimeStateSuspended:      {"suspended"},
		operatorapi.RuntimeStateResuming:       {"resuming"},
		operatorapi.RuntimeStateFailed:         {"staying", "canceled", "failed"},
		operatorapi.RuntimeStateDeprovisioning: {"leaving"},
	}
	shown, filtered := map[operatorapi.RuntimeState][]string{}, map[operatorapi.RuntimeState][]string{}

	for _, runtime := range list[operatorapi.RuntimeList](b, "/runtimes").Data {
		shown[runtime.Status.State] = append(shown[runtime.Status.State], runtime.InstanceID)
	}

	for state := range want {
		for _, runtime := range list[operatorapi.RuntimeList](b, "/runtimes?state="+string(state)).Data {
			filtered[state] = append(filtered[state], runtime.InstanceID)
		}
	}

	if diff := cmp.Diff(want, shown); diff != "" {
		b.Errorf("instances: -want +got\n%s", diff)
	}

	if diff := cmp.Diff(want, filtered); diff != "" {
		b.Errorf("filters: -want +got\n%s", diff)
	}
}

func TestFiltersOfRuntimes(t *testing.T) {
	b := newBench(t)
	b.instance("a", process.Succeeded)
	b.instance("b", process.Succeeded, func(i *environment.Instance) { i.GlobalAccountID, i.Region = "other", "eu-west-1" })
	b.instance("c", process.Succeeded, func(i *environment.Instance) {
		i.SubAccountID, i.PlanName, i.PlanID, i.PlatformRegion = "other", "gcp", "gcp-id", "cf-us10"
	})

	b.operation("b", environment.KindUpdate, process.Succeeded)
	b.instance("d", process.Succeeded, func(i *environment.Instance) {
		i.PlanName, i.PlanID, i.GlobalAccountID, i.SubAccountID = "own", "own-id", "moved", "d"
	})

	for _, change := range []string{
		`UPDATE instances SET subscription_account_id = 'former', shared_with = 'cf-one cf-two', maintenance_version = '1.1.0' WHERE id = 'd'`,
		`UPDATE instances SET expires_at = '2000-01-01T00:00:00.000000Z', expired_at = '2000-01-01T00:00:00.000000Z' WHERE id = 'd'`,
	} {
		if _, err := storage.Exec(t.Context(), b.db.Writer(), change); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := storage.Exec(t.Context(), b.db.Writer(), `UPDATE instances SET expires_at = ? WHERE id = 'c'`, storage.At(b.clock.Now())); err != nil {
		t.Fatal(err)
	}

	// at returns the time that is the given number of hours after the last creation.
	at := func(hours int) string {
		return b.clock.Now().Add(time.Second + time.Duration(hours)*time.Hour).UTC().Format(time.RFC3339)
	}

	for query, want := range map[string][]string{
		"":                           {"d", "c", "b", "a"},
		"?instance_id=b":             {"b"},
		"?account=ga":                {"c", "a"},
		"?account=ga&subaccount=sa":  {"a"},
		"?subaccount=other":          {"c"},
		"?region=eu-west-1":          {"b"},
		"?region=cf-us10":            {"c"},
		"?plan=gcp":                  {"c"},
		"?plan=plan-id":              {"b", "a"},
		"?account=nobody":            nil,
		"?name=name-b":               {"b"},
		"?name=name-b&account=ga":    nil,
		"?plan=trial":                nil,
		"?instance_id=b&account=ga":  nil,
		"?state=failed":              nil,
		"?state=succeeded&plan=aws":  {"b", "a"},
		"?account=" + "%27%20OR%201": nil,

		"?provider=aws":                                   {"d", "c", "b", "a"},
		"?provider=azure":                                 nil,
		"?shoot=c-b":                                      {"b"},
		"?shoot=c-b&account=ga":                           nil,
		"?runtime=runtime-c":                              {"c"},
		"?subscription_account=former":                    {"d"},
		"?shared_with=cf-two":                             {"d"},
		"?shared_with=cf":                                 nil,
		"?maintenance_version=1.1.0":                      {"d"},
		"?expired=true":                                   {"d"},
		"?expired=false&plan=gcp":                         {"c"},
		"?expires_before=" + at(1):                        {"c"},
		"?expires_before=" + at(-48):                      nil,
		"?since=" + at(0):                                 nil,
		"?until=" + at(0):                                 {"d", "c", "b", "a"},
		"?since=" + at(-1) + "&until=" + at(0):            {"d", "c", "b", "a"},
		"?kind=provision":                                 {"d", "c", "a"},
		"?kind=update":                                    {"b"},
		"?kind=update&plan=gcp":                           nil,
		"?kind=provision&provider=aws&shared_with=cf-two": {"d"},
	} {
		got := instanceIDs(list[operatorapi.RuntimeList](b, "/runtimes"+query).Data)
		if diff := cmp.Diff(want, got); diff != "" {
			b.Errorf("%s: -want +got\n%s", query, diff)
		}
	}
}

// TestInvalidFiltersOfRuntimes checks that a filter with an invalid value is rejected: if it were ignored, the list would contain all instances.
func TestInvalidFiltersOfRuntimes(t *testing.T) {
	b := newBench(t)

	for query, want := range map[string]string{
		"expired=maybe":                        "expired must be true or false.",
		"since=yesterday":                      "since must be a time",
		"until=1":                              "until must be a time",
		"expires_before=2030-01-02":            "expires_before must be a time",
		"kind=explode":                         "The kind \\\"explode\\\" is unknown. Use one of: provision,",
		"kind=provision&state=failed":          "kind and operation_state cannot be combined with state",
		"shared_with=%25":                      "shared_with must be the name of a platform.",
		"kind=provision&state=succeeded":       "kind and operation_state cannot be combined with state",
		"operation_state=pending&state=failed": "kind and operation_state cannot be combined with state",
		"operation_state=done":                 "The operation_state \\\"done\\\" is unknown. Use one of: pending,",
		"suspended=perhaps":                    "suspended must be true or false.",
		"updated_since=today":                  "updated_since must be a time",
		"updated_before=1":                     "updated_before must be a time",
		"problem=" + strings.Repeat("x", 2000): "problem must have at most",
		"kubernetes_version=1.34&total=true":   "kubernetes_version and kyma_version cannot be combined with total or page.",
		"kyma_version=2&page=2":                "kubernetes_version and kyma_version cannot be combined with total or page.",
		"leftovers=true&service=s":             "leftovers and service cannot be combined.",
		"leftovers=true&kyma_version=2":        "leftovers and kyma_version cannot be combined.",
		"leftovers=true&runtime=r":             "leftovers and runtime cannot be combined.",
		"leftovers=true&kind=provision":        "leftovers and kind cannot be combined.",
	} {
		if got := b.want(query, b.do("viewer", "GET", "/runtimes?"+query), 400); !strings.Contains(got.Raw, want) {
			t.Errorf("%s: got %s, want %q", query, got.Raw, want)
		}
	}
}

// TestUnknownYears checks that both databases reject times outside of the years 1 to 9999 with 400: PostgreSQL does not know the year 0.
func TestUnknownYears(t *testing.T) {
	onEach(t, func(b *bench) {
		cursor := base64.RawURLEncoding.EncodeToString([]byte("0000-01-01T00:00:00Z a"))

		for _, path := range []string{
			"/runtimes?since=0000-01-01T00:00:00Z", "/runtimes?until=0001-01-01T00:00:00%2B01:00", "/runtimes?until=9999-12-31T23:59:59-01:00",
			"/operations?since=0000-01-01T00:00:00Z", "/runtimes?cursor=" + cursor, "/operations?cursor=" + cursor,
		} {
			b.want(path, b.do("viewer", "GET", path), 400)
		}

		b.want("the audit log", b.do("admin", "GET", "/audit?since=0000-01-01T00:00:00Z"), 400)
	})
}

// TestVersionsOfRuntimes reads versions from the encrypted requests. The list works even if it contains a row that was changed
// outside of the broker.
func TestVersionsOfRuntimes(t *testing.T) {
	b := newBench(t)
	ordered := func(kyma *environment.Kyma) func(*environment.Instance) {
		return func(i *environment.Instance) {
			i.Request.Cluster = environment.Cluster{KubernetesVersion: "1.34.2", Kyma: kyma}
		}
	}
	b.instance("a", process.Succeeded, ordered(&environment.Kyma{Version: "2.0.1"}))
	b.instance("b", process.Succeeded, ordered(nil))
	b.instance("c", process.Succeeded, ordered(nil))

	if _, err := storage.Exec(t.Context(), b.db.Writer(), `UPDATE instances SET shoot_name = 'other' WHERE id = 'c'`); err != nil {
		t.Fatal(err)
	}

	for query, want := range map[string][]string{
		"":                {"c  ", "b  ", "a  "},
		"?versions=false": {"c  ", "b  ", "a  "},
		"?versions=true":  {"c  ", "b 1.34.2 ", "a 1.34.2 2.0.1"},
	} {
		var got []string
		for _, shown := range list[operatorapi.RuntimeList](b, "/runtimes"+query).Data {
			got = append(got, shown.InstanceID+" "+shown.KubernetesVersion+" "+shown.KymaVersion)
		}

		if diff := cmp.Diff(want, got); diff != "" {
			b.Errorf("%s: -want +got\n%s", query, diff)
		}
	}
}

// TestEveryFieldOfRuntimesHasAFilter checks that the list has a filter for each of its fields. It fails for a new field without one.
// The two instances differ in all fields, and each filter has the value of the first one.
func TestEveryFieldOfRuntimesHasAFilter(t *testing.T) {
	b := newBench(t)
	created := b.clock.Now().Add(time.Second)
	failed := b.instance("one", process.Failed, func(i *environment.Instance) {
		i.DashboardURL, i.MaintenanceVersion, i.Platform, i.DeletionProtection = "https://dashboard.example.com/?one=1", "1.1.0", "cf-one", true
		i.SharedWith = []string{"cf-three"}
		i.Request.Cluster = environment.Cluster{KubernetesVersion: "1.34.2", Kyma: &environment.Kyma{Version: "2.0.1"}}
	})

	if _, err := storage.Exec(t.Context(), b.db.Writer(), `UPDATE operations SET problem_message = 'There is no quota left.' WHERE id = ?`, failed); err != nil {
		t.Fatal(err)
	}

	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	b.instance("two", process.Succeeded, func(i *environment.Instance) {
		i.ServiceID, i.PlanID, i.PlanName, i.GlobalAccountID, i.SubAccountID = "other", "other", "gcp", "other", "other"
		i.PlatformRegion, i.Provider, i.Region, i.Platform = "cf-us10", "gcp", "us-east1", "cf-two"
	})
	b.operation("two", environment.KindUpdate, process.Succeeded)

	if err := b.db.InTx(t.Context(), func(tx storage.Tx) error {
		changed, err := b.instances.Get(t.Context(), tx, "one")
		if err != nil {
			return err
		}

		changed.SubscriptionAccountID, changed.Suspended, changed.ExpiresAt = "former", true, created

		if _, err := storage.Exec(t.Context(), tx, `INSERT INTO instance_labels (instance_id, name, value) VALUES ('one', 'ring', 'canary')`); err != nil {
			return err
		}

		return b.instances.Update(t.Context(), tx, changed)
	}); err != nil {
		t.Fatal(err)
	}

	later := url.QueryEscape(created.Add(time.Minute).Format(time.RFC3339))
	filters := map[string]string{
		"instanceID": "instance_id=one", "runtimeID": "runtime=runtime-one", "globalAccountID": "account=ga", "subAccountID": "subaccount=sa",
		"provider": "provider=aws", "region": "region=eu-central-1", "subAccountRegion": "region=cf-eu10", "platform": "platform=cf-one",
		"sharedWith": "shared_with=cf-three", "name": "name=name-one", "shootName": "shoot=c-one", "serviceClassID": "service=service",
		"servicePlanID": "plan=plan-id", "servicePlanName": "plan=aws", "dashboardURL": "dashboard_url=" + url.QueryEscape("https://dashboard.example.com/?one=1"),
		"subscriptionAccountID": "subscription_account=former", "maintenanceVersion": "maintenance_version=1.1.0", "deletionProtection": "protected=true",
		"kubernetesVersion": "kubernetes_version=1.34", "kymaVersion": "kyma_version=2.0.1", "labels": "labels=ring%3Dcanary",
		"status.state": "state=failed", "status.suspended": "suspended=true", "status.expiresAt": "expires_before=" + later, "status.createdAt": "until=" + later,
		"status.modifiedAt": "updated_before=" + later, "status.lastOperation.operationID": "operation=" + failed, "status.lastOperation.kind": "kind=provision",
		"status.lastOperation.state": "operation_state=failed", "status.lastOperation.problem": "problem=QUOTA",
	}
	// These fields are not in a list, or follow from fields with a filter.
	without := map[string]string{
		"clientData": "only of the Provisioner", "events": "only in the details", "parameters": "only in the details", "resolved": "only in the details",
		"provisionerTenant": "follows from the account", "provisionerSubAccount": "follows from the subaccount", "leftover": "only of leftovers",
		"status.deletedAt": "only of leftovers", "status.expiredAt": "expired=true, in TestFiltersOfRuntimes",
	}

	for _, field := range fieldsOfRuntimes() {
		query, filtered := filters[field]
		if _, excused := without[field]; !filtered && !excused {
			b.Errorf("GET /runtimes has no filter by %s", field)
		}

		if !filtered {
			continue
		}

		if diff := cmp.Diff([]string{"one"}, instanceIDs(list[operatorapi.RuntimeList](b, "/runtimes?"+query).Data)); diff != "" {
			b.Errorf("%s: -want +got\n%s", query, diff)
		}
	}
}

// fieldsOfRuntimes returns the JSON names of the fields of a runtime in a list. It includes only those fields of the newest operation
// that the table of instances shows. Filters for the others belong to GET /operations.
func fieldsOfRuntimes() []string {
	fields := []string{"status.lastOperation.operationID", "status.lastOperation.kind", "status.lastOperation.state", "status.lastOperation.problem"}

	for prefix, of := range map[string]reflect.Type{"": reflect.TypeFor[operatorapi.Runtime](), "status.": reflect.TypeFor[operatorapi.RuntimeStatus]()} {
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "status" && name != "lastOperation" {
				fields = append(fields, prefix+name)
			}
		}
	}

	return fields
}

// TestVersionFiltersOfRuntimes checks that a page of a filter by version continues after the last instance that was read, even if
// that instance is not listed.
func TestVersionFiltersOfRuntimes(t *testing.T) {
	b := newBench(t)

	for i := range 230 {
		version := "1.33.1"
		if i%100 == 3 {
			version = "1.34." + strconv.Itoa(i)
		}

		b.instance(fmt.Sprintf("i%03d", i), process.Succeeded, func(i *environment.Instance) {
			i.Request.Cluster = environment.Cluster{KubernetesVersion: version}
		})
	}

	for query, want := range map[string][]string{
		"kubernetes_version=1.34&page_size=2":             {"i203 i103", "i003"},
		"kubernetes_version=1.34&page_size=3":             {"i203 i103 i003", ""},
		"kubernetes_version=1.34&sort=oldest&page_size=2": {"i003 i103", "i203"},
		"kubernetes_version=1.34.103":                     {"i103"},
		"kubernetes_version=1.3":                          {""},
		"kubernetes_version=1.34&kyma_version=2":          {""},
		"kubernetes_version=1.34&account=nobody":          {""},
	} {
		var got []string

		for cursor := ""; ; {
			page := list[operatorapi.RuntimeList](b, "/runtimes?"+query+"&cursor="+url.QueryEscape(cursor))
			got = append(got, strings.Join(instanceIDs(page.Data), " "))

			if page.Count != len(page.Data) {
				b.Errorf("%s: count %d of %d", query, page.Count, len(page.Data))
			}

			if cursor = page.Cursor; cursor == "" {
				break
			}
		}

		if diff := cmp.Diff(want, got); diff != "" {
			b.Errorf("%s: -want +got\n%s", query, diff)
		}
	}
}

func TestPagesOfRuntimes(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		b.instance(id, process.Succeeded)
	}

	var byCursor []string

	for query := "?page_size=2"; query != ""; {
		page := list[operatorapi.RuntimeList](b, "/runtimes"+query)
		if page.Count != len(page.Data) || page.TotalCount != nil {
			b.Errorf("%s: count %d, total %v", query, page.Count, page.TotalCount)
		}

		for _, runtime := range page.Data {
			byCursor = append(byCursor, runtime.InstanceID)
		}

		if query = ""; page.Cursor != "" {
			query = "?page_size=2&cursor=" + url.QueryEscape(page.Cursor)

			b.instance("new-"+page.Cursor[len(page.Cursor)-3:], process.Succeeded) // new instances do not shift a cursor
		}
	}

	if diff := cmp.Diff([]string{"e", "d", "c", "b", "a"}, byCursor); diff != "" {
		b.Errorf("by cursor: -want +got\n%s", diff)
	}

	second := list[operatorapi.RuntimeList](b, "/runtimes?page=2&page_size=3&total=true")

	var byNumber []string
	for _, runtime := range second.Data {
		byNumber = append(byNumber, runtime.InstanceID)
	}

	if diff := cmp.Diff([]string{"d", "c", "b"}, byNumber); diff != "" {
		b.Errorf("by number: -want +got\n%s", diff)
	}

	if second.TotalCount == nil || *second.TotalCount != 7 {
		b.Errorf("total: want 7, got %v", second.TotalCount)
	}

	if beyond := list[operatorapi.RuntimeList](b, "/runtimes?page=99"); beyond.Data == nil || beyond.Count != 0 {
		b.Errorf("beyond the last page: %+v", beyond)
	}
}

// TestSortedPagesOfRuntimes follows cursors in each order, with and without a filter by version. A cursor is valid in its own order only.
func TestSortedPagesOfRuntimes(t *testing.T) {
	b := newBench(t)

	for i, name := range []string{"beta", "Alpha", "alpha", "gamma"} {
		b.instance("i"+strconv.Itoa(i), process.Succeeded, func(i *environment.Instance) {
			i.Name, i.Region, i.PlanName, i.GlobalAccountID = name, "region of "+name, "plan of "+name, "account of "+name
			i.Request.Cluster = environment.Cluster{KubernetesVersion: "1.34.1"}
		})
	}

	cursors := map[string]string{}

	for sort, want := range map[string]string{
		"": "i3 i2 i1 i0", "newest": "i3 i2 i1 i0", "oldest": "i0 i1 i2 i3",
		"name": "i1 i2 i0 i3", "-name": "i3 i0 i2 i1", "plan": "i1 i2 i0 i3", "-plan": "i3 i0 i2 i1",
		"region": "i1 i2 i0 i3", "-region": "i3 i0 i2 i1", "account": "i1 i2 i0 i3", "-account": "i3 i0 i2 i1",
	} {
		for _, filter := range []string{"", "&kubernetes_version=1.34"} {
			var got []string

			for cursor := ""; len(got) <= 4; {
				page := list[operatorapi.RuntimeList](b, "/runtimes?page_size=1&sort="+url.QueryEscape(sort)+filter+"&cursor="+url.QueryEscape(cursor))
				got = append(got, instanceIDs(page.Data)...)

				if cursor = page.Cursor; cursor == "" {
					break
				}

				cursors[sort] = cursor
			}

			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				b.Errorf("sort=%s%s: -want +got\n%s", sort, filter, diff)
			}
		}
	}

	named := func(sort string) string {
		if sort == "" {
			return "newest"
		}

		return sort
	}

	for _, sorts := range [][2]string{{"name", "-name"}, {"name", ""}, {"", "oldest"}, {"oldest", "newest"}, {"plan", "region"}} {
		refused := b.want("a cursor of another order", b.do("viewer", "GET", "/runtimes?sort="+url.QueryEscape(sorts[1])+"&cursor="+cursors[sorts[0]]), http.StatusBadRequest)
		if want := "cursor belongs to a list with sort=" + named(sorts[0]) + ", not sort=" + named(sorts[1]); !strings.Contains(refused.Raw, want) {
			b.Errorf("the answer %s lacks %q", refused.Raw, want)
		}
	}

	b.want("a cursor of a sorted list", b.do("viewer", "GET", "/operations?cursor="+cursors["name"]), http.StatusBadRequest)
	b.want("the default order has a name", b.do("viewer", "GET", "/runtimes?sort=newest&cursor="+cursors[""]), http.StatusOK)
}

// TestSearchOfRuntimes finds instances by the beginning of the name, by a whole ID and, with anywhere, by any part of them.
func TestSearchOfRuntimes(t *testing.T) {
	b := newBench(t)
	b.instance("one", process.Succeeded, func(i *environment.Instance) { i.Name = "Storefront" })
	b.instance("two", process.Succeeded, func(i *environment.Instance) { i.Name = "backstore" })

	for query, want := range map[string]string{
		"search=store": "one", "search=+store+": "one", "search=ne": "", "search=two": "two",
		"search=store&anywhere=true": "two one", "search=ne&anywhere=true": "one", "anywhere=true": "two one",
	} {
		if got := strings.Join(instanceIDs(list[operatorapi.RuntimeList](b, "/runtimes?"+query).Data), " "); got != want {
			b.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

func TestListsRejectInvalidQueries(t *testing.T) {
	b := newBench(t)

	for query, reason := range map[string]string{
		"shot=x":                      "unknown filters are rejected",
		"plan=bogus":                  "a plan must be in the catalog or have instances",
		"state=nice":                  "the state must be in the API description",
		"page=0":                      "pages are counted from 1",
		"page=x":                      "a page is a number",
		"page=99999999999":            "pages have a maximum",
		"page_size=0":                 "a page size is positive",
		"page_size=101":               "a page size has a maximum",
		"total=maybe":                 "total is a boolean",
		"sort=state":                  "a list has an order that an index serves",
		"anywhere=maybe":              "anywhere is a boolean",
		"cursor=rubbish":              "a cursor must decode",
		"cursor=eA":                   "a cursor contains a time",
		"page=1&cursor=eA":            "page and cursor cannot be used together",
		"instance_id=a&instance_id=b": "a filter has one value",
		"instance_id=%00":             "no text contains NUL",
		"%zz":                         "the query must be well-formed",
	} {
		b.want(reason, b.do("viewer", "GET", "/runtimes?"+query), http.StatusBadRequest)

		if query != "plan=bogus" {
			b.want(reason, b.do("viewer", "GET", "/operations?"+query), http.StatusBadRequest)
		}
	}
}

func TestRuntimeWithParameters(t *testing.T) {
	b := newBench(t)
	b.instance("one", process.InProgress, func(i *environment.Instance) {
		i.Request.Parameters = json.RawMessage(`{"autoScalerMin": 3}`)
		i.Request.Cluster = environment.Cluster{MachineType: "m6i.large", AutoScalerMin: 3, AutoScalerMax: 20, NodesCIDR: "10.250.0.0/22"}
	})
	b.instance("own", process.Failed, func(i *environment.Instance) {
		i.Request.Parameters = json.RawMessage(`{"kubeconfig": "c2VjcmV0", "shootName": "c-own"}`)
		i.Request.Cluster = environment.Cluster{Own: &environment.OwnCluster{Kubeconfig: "secret"}}
	})

	got := b.want("a runtime", b.do("viewer", "GET", "/runtimes/one"), http.StatusOK)
	shown := read[operatorapi.Runtime](b, got)

	if diff := cmp.Diff(map[string]any{"autoScalerMin": 3.0}, shown.Parameters); diff != "" {
		b.Errorf("parameters as sent: -want +got\n%s", diff)
	}

	wantResolved := map[string]any{
		"name": "name-one", "provider": "aws", "region": "eu-central-1", "machineType": "m6i.large",
		"autoScalerMin": 3.0, "autoScalerMax": 20.0, "maxSurge": 0.0, "maxUnavailable": 0.0,
		"networking": map[string]any{"nodes": "10.250.0.0/22"},
	}
	if diff := cmp.Diff(wantResolved, shown.Resolved); diff != "" {
		b.Errorf("resolved parameters: -want +got\n%s", diff)
	}

	last := shown.Status.LastOperation
	if shown.Name != "name-one" || last.InstanceName != "name-one" || last.Attempt == 0 && last.NextRun.IsZero() || last.Timeline != nil {
		b.Errorf("the newest operation lacks details, or has its timeline: %+v", shown)
	}

	for _, path := range []string{"/runtimes/own", "/runtimes"} {
		if raw := b.want("a cluster of the tenant", b.do("viewer", "GET", path), http.StatusOK).Raw; strings.Contains(raw, "c2VjcmV0") ||
			strings.Contains(raw, "secret") {
			b.Errorf("%s shows the tenant's kubeconfig: %s", path, raw)
		}
	}

	own := read[operatorapi.Runtime](b, b.do("viewer", "GET", "/runtimes/own"))
	if diff := cmp.Diff(map[string]any{"shootName": "c-own"}, own.Parameters); diff != "" {
		b.Errorf("parameters without secrets: -want +got\n%s", diff)
	}

	b.want("an unknown instance", b.do("viewer", "GET", "/runtimes/nobody"), http.StatusNotFound)
}
