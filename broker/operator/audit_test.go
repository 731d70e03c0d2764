package operator_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func (b *bench) audit(query string) []operatorapi.AuditEntry {
	b.Helper()

	page := read[operatorapi.AuditList](b, b.want("the audit log", b.do("admin", "GET", "/audit"+query), http.StatusOK)).Data
	for i, j := 0, len(page)-1; i < j; i, j = i+1, j-1 {
		page[i], page[j] = page[j], page[i]
	}

	return page
}

func TestAuditLogRecordsOperators(t *testing.T) {
	onEach(t, func(b *bench) {
		b.kubeconfigs.make = func(environment.Instance) (secret.String, error) { return "m4rk3d", nil }
		later := func() { b.clock.SetTime(b.clock.Now().Add(time.Second)) }

		running := b.instance("one", process.InProgress)
		failed := b.instance("two", process.Failed)
		b.instance("three", process.Succeeded)

		later()
		b.intervene("retry", running, onlyReason)
		later()
		b.intervene("cancel", running, onlyReason)
		later()
		retry := b.answered("a retry", b.intervene("retry", failed, onlyReason)).ID
		later()
		b.want("a kubeconfig", b.do("admin", "POST", "/runtimes/three/adminkubeconfig"), http.StatusOK)
		later()
		b.want("an instance without a kubeconfig", b.do("admin", "POST", "/runtimes/none/adminkubeconfig"), http.StatusNotFound)
		later()
		b.want("operators lack the role", b.do("operator", "POST", "/runtimes/three/adminkubeconfig"), http.StatusForbidden)
		later()
		b.want("operators lack the role for filters, too", b.do("operator", "GET", "/audit"), http.StatusForbidden)
		later()
		b.want("viewers lack the role", b.do("viewer", "PUT", "/expire/service_instance/three"), http.StatusForbidden)
		later()

		b.expirer.err = failure.New(failure.Conflict, "leaves")
		b.want("the instance cannot expire now", b.do("operator", "PUT", "/expire/service_instance/three"), http.StatusConflict)

		operator := operatorapi.Actor{User: "operator", Means: "password", Address: "127.0.0.1", RequestID: identity}
		admin := operator
		admin.User = "admin"
		viewer := operator
		viewer.User = "viewer"

		want := []operatorapi.AuditEntry{
			{Action: "retry", OperationID: running, By: operator, Status: 409, Code: "Conflict"},
			{
				Action: "cancel", InstanceID: "one", OperationID: running, By: operator, Status: 202, Reason: "the quota was raised",
				Before: map[string]any{"kind": "provision", "state": "in progress"}, After: map[string]any{"kind": "provision", "state": "canceling"},
			},
			{
				Action: "retry", InstanceID: "two", OperationID: failed, By: operator, Status: 202, Reason: "the quota was raised",
				Before: map[string]any{"kind": "provision", "state": "failed"},
				After:  map[string]any{"kind": "provision", "state": "pending", "successorID": retry},
			},
			{Action: "adminkubeconfig", InstanceID: "three", By: admin, Status: 200, After: map[string]any{"runtimeID": "runtime-three"}},
			{Action: "adminkubeconfig", InstanceID: "none", By: admin, Status: 404, Code: "NotFound"},
			{Action: "adminkubeconfig", InstanceID: "three", By: operator, Status: 403, Code: "Forbidden"},
			{Action: "access", By: operator, Status: 403, Code: "Forbidden"},
			{Action: "expire", InstanceID: "three", By: viewer, Status: 403, Code: "Forbidden"},
			{Action: "expire", InstanceID: "three", By: operator, Status: 409, Code: "Conflict"},
		}

		got := b.audit("")
		for i := range got {
			got[i].ID, got[i].At = "", time.Time{}
		}

		if diff := cmp.Diff(want, got); diff != "" {
			b.Errorf("audit log: -want +got\n%s", diff)
		}

		if shown := read[operatorapi.Operation](b, b.do("viewer", "GET", "/operations/"+retry)); shown.OrderedBy != "operator" {
			b.Errorf("the new operation has the requester %q", shown.OrderedBy)
		}
	})
}

func TestNoKubeconfigWithoutAnEntry(t *testing.T) {
	db := storagetest.SQLite(t)
	b := benchOn(t, db)
	b.kubeconfigs.make = func(environment.Instance) (secret.String, error) { return "m4rk3d", nil }
	b.instance("one", process.Succeeded)

	if _, err := storage.Exec(t.Context(), db.Writer(), `CREATE TRIGGER out_of_order BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'out of order'); END`); err != nil {
		t.Fatal(err)
	}

	got := b.want("no kubeconfig without an audit entry", b.do("admin", "POST", "/runtimes/one/adminkubeconfig"), http.StatusInternalServerError)
	if strings.Contains(got.Raw, "m4rk3d") {
		t.Error("the response contains the kubeconfig")
	}
}

func TestPagesAndFiltersOfTheAuditLog(t *testing.T) {
	b := newBench(t)
	ids := []string{b.instance("one", process.InProgress), b.instance("two", process.InProgress), b.instance("three", process.InProgress)}

	for _, id := range ids {
		b.clock.SetTime(b.clock.Now().Add(time.Minute))
		b.answered("a cancel", b.intervene("cancel", id, onlyReason))
	}

	since := b.clock.Now().Add(-time.Minute).Format(time.RFC3339)

	for query, want := range map[string]int{
		"":                                   3,
		"?instance_id=two":                   1,
		"?user=operator":                     3,
		"?user=admin":                        0,
		"?action=cancel":                     3,
		"?action=retry":                      0,
		"?since=" + url.QueryEscape(since):   2,
		"?until=" + url.QueryEscape(since):   1,
		"?action=cancel&instance_id=one":     1,
		"?page_size=2":                       2,
		"?page_size=3":                       3,
		"?instance_id=two&user=operator":     1,
		"?since=2000-01-01T00:00:00%2B01:00": 3,
	} {
		if got := len(b.audit(query)); got != want {
			t.Errorf("%s: want %d entries, got %d", query, want, got)
		}
	}

	first := read[operatorapi.AuditList](b, b.do("admin", "GET", "/audit?page_size=2"))
	second := read[operatorapi.AuditList](b, b.do("admin", "GET", "/audit?page_size=2&cursor="+first.Cursor))

	if len(second.Data) != 1 || second.Cursor != "" || second.Data[0].InstanceID != "one" {
		t.Errorf("the second page is %+v", second)
	}

	for _, query := range []string{"?total=true", "?page=2", "?since=yesterday", "?until=2030", "?who=me", "?cursor=x", "?user=a&user=b"} {
		b.want("an unknown filter is rejected: "+query, b.do("admin", "GET", "/audit"+query), http.StatusBadRequest)
	}
}

func TestTooLongBody(t *testing.T) {
	b := newBench(t)
	id := b.instance("one", process.InProgress)
	body := `{"reason": "` + strings.Repeat("x", 100<<10) + `"}`

	b.want("with Content-Length", b.send("operator", "POST", "/operations/"+id+"/cancel", strings.NewReader(body)), http.StatusRequestEntityTooLarge)
	b.want("without Content-Length", b.intervene("cancel", id, body), http.StatusRequestEntityTooLarge)
}

func TestAuditEntryByID(t *testing.T) {
	onEach(t, func(b *bench) {
		b.instance("one", process.InProgress)
		b.want("viewers lack the role", b.do("viewer", "PUT", "/expire/service_instance/one"), http.StatusForbidden)

		for _, entry := range b.audit("") {
			got := read[operatorapi.AuditEntry](b, b.want("an entry", b.do("admin", "GET", "/audit/"+entry.ID), http.StatusOK))
			if diff := cmp.Diff(entry, got); diff != "" {
				b.Errorf("entry %s: -list +entry\n%s", entry.ID, diff)
			}
		}

		if len(b.audit("")) == 0 {
			b.Error("the audit log is empty")
		}

		b.want("an unknown entry", b.do("admin", "GET", "/audit/nothing"), http.StatusNotFound)
	})
}
