package broker_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// trail returns the entries of the audit log as lines of text, oldest first.
func (b *fixture) trail() []string {
	b.Helper()

	entries, err := b.entries.List(b.Context(), auditlog.Filter{Limit: 1000})
	if err != nil {
		b.Fatal(err)
	}

	lines := make([]string, len(entries))

	for i, entry := range entries {
		line := strings.TrimSpace(fmt.Sprintf("%s %s by %s/%s/%s: %d %s", entry.Action, entry.InstanceID,
			entry.By.User, entry.By.Platform, entry.By.Originator, entry.Status, entry.Code))
		if entry.BindingID != "" {
			line += " of " + entry.BindingID
		}

		lines[len(entries)-1-i] = line
	}

	return lines
}

// later advances the clock by a second, so that audit entries have different times.
func (b *fixture) later() { b.clock.SetTime(b.clock.Now().Add(time.Second)) }

const bert = "cloudfoundry eyJ1c2VyX2lkIjoiYmVydCJ9"

func TestAuditLogRecordsActions(t *testing.T) {
	onEach(t, func(b *fixture) {
		send := func(want int, c call) {
			b.later()
			b.want("audited", b.do(c), want)
		}
		async := "?accepts_incomplete=true"
		id := path(instanceID)

		send(202, call{method: "PUT", path: id + async, body: order(), header: map[string]string{"X-Broker-API-Originating-Identity": bert}})
		send(202, call{method: "PUT", path: id + async, body: order()})
		send(409, call{method: "PUT", path: id + async, body: order(with("space_guid", "other"))})
		send(400, call{method: "PUT", path: path("new") + async, body: "{"})
		send(412, call{method: "DELETE", path: id, header: map[string]string{"X-Broker-API-Version": "1.0"}})
		send(400, call{method: "PUT", path: id + "/service_bindings/b1", body: "{"})
		send(401, call{method: "PATCH", path: id, user: "nobody"})
		send(403, call{method: "DELETE", path: id, user: "watcher", password: password})
		send(401, call{method: "GET", path: "/v2/catalog", user: user, password: "wrong"})
		send(404, call{method: "GET", path: path("none")})
		send(200, call{method: "GET", path: "/v2/catalog"})
		send(413, call{method: "PUT", path: id + async, body: strings.Repeat(" ", 2<<20)})
		send(202, call{method: "DELETE", path: id + async + ids})

		want := []string{
			"provision " + instanceID + " by platform/cloudfoundry/bert: 202",
			"provision " + instanceID + " by platform//: 409",
			"provision new by platform//: 400",
			"deprovision " + instanceID + " by platform//: 412",
			"bind " + instanceID + " by platform//: 400 of b1",
			"update " + instanceID + " by //: 401 Unauthorized",
			"deprovision " + instanceID + " by watcher//: 403 Forbidden",
			"access  by //: 401 Unauthorized",
			"provision " + instanceID + " by platform//: 413 RequestEntityTooLarge",
			"deprovision " + instanceID + " by platform//: 202",
		}
		if diff := cmp.Diff(want, b.trail()); diff != "" {
			b.Errorf("audit log: -want +got\n%s", diff)
		}

		if got := b.carried(instanceID); got[1].OrderedBy != "bert" || got[0].OrderedBy != user {
			b.Errorf("the requesters of the operations are %q and %q, want both set", got[1].OrderedBy, got[0].OrderedBy)
		}
	})
}

func TestAuditLogRecordsChangesWithoutSecrets(t *testing.T) {
	const marked = "m4rk3d-s3cr3t"

	b := newFixture(t)
	b.want("an order with secrets", b.put(instanceID, order(with("context", map[string]any{
		"platform": "sapcp", "globalaccount_id": "ga", "subaccount_id": "sa", "user_id": "alice", "instance_name": "mine",
		"sm_operator_credentials": smCredentials(map[string]any{"clientid": marked, "clientsecret": marked}),
	}))), 202)
	b.later()
	b.want("a rejected order", b.put("other", order(with("parameters", map[string]any{"kubeconfig": marked, "machineType": marked}))), 400)
	b.later()
	b.want("a deletion", b.remove(instanceID), 202)

	entries, err := b.entries.List(b.Context(), auditlog.Filter{InstanceID: instanceID, Limit: 10})
	if err != nil || len(entries) != 2 {
		t.Fatalf("want two audit entries, got %v, %v", entries, err)
	}

	deletion, creation := entries[0], entries[1]
	if deletion.After != nil || creation.Before != nil {
		t.Errorf("before the creation: %v, after the deletion: %v, want neither", creation.Before, deletion.After)
	}

	for name, want := range map[string]any{"plan": "aws", "region": "eu-west-1", "autoScalerMin": 4.0, "globalAccountID": "ga", "name": "mine"} {
		if creation.After[name] != want || deletion.Before[name] != want {
			t.Errorf("%s: want %v, got %v after the creation and %v before the deletion", name, want, creation.After[name], deletion.Before[name])
		}
	}

	if by := creation.By; by.RequestID != identity || by.Address != "127.0.0.1" || by.Means != string(auth.ByPassword) {
		t.Errorf("the actor is incomplete: %+v", by)
	}

	for _, query := range []string{`SELECT entry FROM audit`, `SELECT audit || ordered_by FROM operations`} {
		rows, err := storage.Select[string](b.Context(), b.operations.Reader(), query)
		if err != nil || len(rows) == 0 {
			t.Fatalf("%s: %v, %v", query, rows, err)
		}

		if strings.Contains(strings.Join(rows, ""), marked) {
			t.Errorf("%s returns a secret: %s", query, rows)
		}
	}
}

// TestAuditLogRecordsChangedIssuer changes the OIDC issuer of a cluster, and thereby who can log in. The audit log
// must show the change.
func TestAuditLogRecordsChangedIssuer(t *testing.T) {
	b := newFixture(t)
	b.provisioned(instanceID)
	b.later()
	b.want("another issuer", b.patch(instanceID, with("parameters", map[string]any{
		"oidc": map[string]any{"clientID": "cluster", "issuerURL": "https://issuer.example.com"},
	})), 202)

	entries, err := b.entries.List(b.Context(), auditlog.Filter{InstanceID: instanceID, Limit: 1})
	if err != nil || len(entries) != 1 {
		t.Fatalf("want one audit entry, got %v, %v", entries, err)
	}

	want := auditlog.Fields{"oidc": map[string]any{
		"clientID": "cluster", "issuerURL": "https://issuer.example.com", "groupsClaim": "groups", "usernameClaim": "sub",
		"usernamePrefix": "-", "signingAlgs": []any{"RS256"},
	}}
	if diff := cmp.Diff([]auditlog.Fields{{"oidc": nil}, want}, []auditlog.Fields{entries[0].Before, entries[0].After}); diff != "" {
		t.Errorf("before and after: -want +got\n%s", diff)
	}
}

func TestAuditLogSamplesRefusals(t *testing.T) {
	b := newFixture(t)

	for range 150 {
		b.want("unauthenticated request", b.do(call{method: "GET", path: "/v2/catalog", user: "nobody"}), 401)
	}

	b.want("rejections of authenticated requests are always recorded", b.put(instanceID, "{"), 400)

	if got := len(b.trail()); got != 101 {
		t.Errorf("got %d entries, want 100 sampled rejections and one more", got)
	}

	b.clock.SetTime(b.clock.Now().Add(time.Minute))
	b.want("a request in the next interval", b.do(call{method: "GET", path: "/v2/catalog", user: "nobody"}), 401)

	entries, err := b.entries.List(b.Context(), auditlog.Filter{Limit: 1})
	if err != nil || entries[0].Missed != 50 {
		t.Errorf("the entry lacks the number of skipped rejections: %+v, %v", entries, err)
	}
}

func TestRefusalWithoutAuditLogIsAnswered(t *testing.T) {
	db := storagetest.SQLite(t)
	b := newFixtureOn(t, db)

	if _, err := storage.Exec(t.Context(), db.Writer(), `CREATE TRIGGER out_of_order BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'out of order'); END`); err != nil {
		t.Fatal(err)
	}

	b.want("a rejection is reported even if the audit log fails", b.put(instanceID, "{"), 400)

	if got := b.trail(); len(got) > 0 {
		t.Errorf("the test needs a failing audit log, but the entry was stored: %v", got)
	}
}

func TestUncheckedCredentialsAreRetried(t *testing.T) {
	b := newFixture(t, func(options *broker.Options) { options.Authorizer = auth.NewAuthorizer(away{}) })
	b.faulty = true

	got := b.want("credentials cannot be checked", b.do(call{method: "GET", path: "/v2/catalog"}), http.StatusServiceUnavailable)
	if got.Header.Get("Retry-After") == "" || got.text("description") == "" {
		t.Errorf("Retry-After is missing: %v", got)
	}
}

// away is an authenticator whose issuer does not respond, so it cannot check credentials.
type away struct{}

func (away) Authenticate(*http.Request) (auth.Identity, error) {
	return auth.Identity{}, errors.New("the issuer does not respond")
}

func (away) Challenge() string { return "" }

// TestNoCredentialsWithoutAnEntry blocks the audit log and sends each request whose response contains credentials of a binding. No
// response may contain them. When the audit log works, each of these responses has an entry.
func TestNoCredentialsWithoutAnEntry(t *testing.T) {
	onRunning(t, func(b *fixture) {
		requests := map[string]func() reply{
			"bind":           func() reply { return b.bind("new", "") },
			"repeated bind":  func() reply { return b.bind("one", "") },
			"fetch":          func() reply { return b.getBinding("one") },
			"repeated later": func() reply { return b.bindLater("one", "") },
		}

		b.want("a binding", b.bind("one", ""), 201)

		if _, err := storage.Exec(b.Context(), b.options.DB.Writer(), `ALTER TABLE audit RENAME TO audit_away`); err != nil {
			b.Fatal(err)
		}

		b.faulty = true

		for name, send := range requests {
			if got := send(); got.Status < 500 || strings.Contains(got.Raw, `"kubeconfig"`) {
				b.Errorf("%s: the response without an entry is %d %s", name, got.Status, got.Raw)
			}
		}

		if _, err := storage.Exec(b.Context(), b.options.DB.Writer(), `ALTER TABLE audit_away RENAME TO audit`); err != nil {
			b.Fatal(err)
		}

		for name, send := range requests {
			before := len(b.issued())
			if got := send(); got.Status >= 300 || !strings.Contains(got.Raw, `"kubeconfig"`) || len(b.issued()) != before+1 {
				b.Errorf("%s: response %d with %d more entries, want credentials with an entry", name, got.Status, len(b.issued())-before)
			}
		}
	})
}

// issued returns the audit log entries for responses that contain credentials.
func (b *fixture) issued() []auditlog.Entry {
	b.Helper()

	entries, err := b.entries.List(b.Context(), auditlog.Filter{Action: auditlog.ActionCredentials, Limit: 1000})
	if err != nil {
		b.Fatal(err)
	}

	return entries
}
