package broker_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

const (
	serviceID = "47c9dcbf-ff30-448e-ab36-d3bad66ba281"
	planAWS   = "361c511f-f939-4621-b228-d0fb79a1fe15"
	planAzure = "4deee563-e5ec-4731-b9b1-53b42d855f0c"
	planGCP   = "ca6e5357-707f-4565-bbbd-b3ab732597c6"
	planTrial = "7d55d31d-35ae-4438-bf13-6ffdfa107d9f"

	user, password = "platform", "s3cret"

	instanceID = "0f5b2c7e-1111-4222-8333-444455556666"
	identity   = "4f8d1c9e-0000-4000-8000-0123456789ab"
	ids        = "&service_id=" + serviceID + "&plan_id=" + planAWS
)

// bench is a broker over HTTP whose operations are carried by the test.
type bench struct {
	*testing.T

	address    string
	options    broker.Options
	instances  *instances.Store
	operations *operations.Store
	bindings   *bindings.Store
	accounts   *accounts
	entries    *auditlog.Store
	clock      *clocktesting.FakePassiveClock
	log        *logtest.Hook
	wakes      atomic.Int64
	// faulty allows answers of 500 and more.
	faulty bool
}

// newBench starts a broker on a new SQLite file. The change, if any, is made to its options.
func newBench(t *testing.T, change ...func(*broker.Options)) *bench {
	t.Helper()

	return benchOn(t, storagetest.SQLite(t), change...)
}

// onEach runs the test with a broker on SQLite and with one on PostgreSQL.
func onEach(t *testing.T, test func(b *bench)) {
	t.Helper()
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) { test(benchOn(t, db)) })
}

func benchOn(t *testing.T, db *storage.DB, change ...func(*broker.Options)) *bench {
	t.Helper()

	b := &bench{T: t, clock: clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))}

	keys := storagetest.Keys(t)

	var err error
	if b.operations, err = operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if b.instances, err = instances.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if b.bindings, err = bindings.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	b.accounts = &accounts{clock: b.clock, roles: map[string]environment.Role{}}

	if b.entries, err = auditlog.Open(t.Context(), db, time.Hour); err != nil {
		t.Fatal(err)
	}

	offer, err := catalog.Load(resources.Catalog(), catalog.Options{KubernetesVersion: "1.34", OperationTimeout: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	users, err := auth.ParseUsers(user + ":" + password + ",watcher:" + password + ":viewer")
	if err != nil {
		t.Fatal(err)
	}

	logger, hook := logtest.NewNullLogger()
	logger.SetLevel(logrus.DebugLevel)

	b.log = hook
	b.options = broker.Options{
		DB: db, Instances: b.instances, Operations: b.operations, Bindings: b.bindings, Catalog: offer,
		BindingLimit: 10, Pause: b.carry, Wake: func() { b.wakes.Add(1) },
		Clock: b.clock, Log: logger, Trail: audit.NewRecorder(b.entries, db, b.clock, logger), Authorizer: auth.NewAuthorizer(users), DefaultRegion: "cf-eu10",
		DashboardURL: "https://dashboard.example.com/?kubeconfigID={instance_id}", PublicURL: "https://broker.example.com/",
		Periods: expiry.Periods{"trial": 14 * 24 * time.Hour},
	}

	for _, apply := range change {
		apply(&b.options)
	}

	b.restart()
	t.Cleanup(func() { b.everybodyIsKnown(db) })

	return b
}

// restart serves what the options are now.
func (b *bench) restart() {
	b.Helper()

	server := httptest.NewServer(broker.NewHandler(b.options))
	b.Cleanup(server.Close)

	b.address = server.URL
}

// everybodyIsKnown fails the test when an operation was accepted of which the audit trail does not know who ordered it.
func (b *bench) everybodyIsKnown(db *storage.DB) {
	b.Helper()

	unknown, err := storage.Select[string](context.Background(), db.Reader(), `SELECT kind FROM operations
		WHERE audit = '' AND NOT EXISTS (SELECT 1 FROM audit WHERE audit.operation_id = operations.id)`)
	if len(unknown) > 0 || err != nil {
		b.Errorf("operations of these kinds were accepted without an entry in the audit trail: %v, %v", unknown, err)
	}
}

// call is a request. It carries what every request needs unless the headers say otherwise; an empty header is left out.
type call struct {
	method, path, body string
	header             map[string]string
	user, password     string
}

// reply is an answer.
type reply struct {
	Status int
	Header http.Header
	Body   map[string]any
	Raw    string
}

// text returns a field of the body that is a string.
func (r reply) text(field string) string {
	text, _ := r.Body[field].(string)

	return text
}

// do sends the request and checks what holds for every answer.
func (b *bench) do(call call) reply {
	b.Helper()

	got := b.send(call)
	b.checkAnswer(call, got)

	return got
}

func (b *bench) send(call call) reply {
	b.Helper()

	request, err := http.NewRequestWithContext(b.Context(), call.method, b.address+call.path, strings.NewReader(call.body))
	if err != nil {
		b.Fatal(err)
	}

	if call.body == "" {
		request.Body = http.NoBody
	}

	headers := map[string]string{
		"X-Broker-API-Version": "2.17", "X-Broker-API-Request-Identity": identity, "Content-Type": "application/json",
	}
	maps.Copy(headers, call.header)

	for name, value := range headers {
		if value != "" {
			request.Header.Set(name, value)
		}
	}

	switch call.user {
	case "":
		request.SetBasicAuth(user, password)
	case "nobody":
	default:
		request.SetBasicAuth(call.user, call.password)
	}

	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		b.Fatalf("%s %s: %v", call.method, call.path, err)
	}
	defer response.Body.Close()

	content, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatalf("%s %s: %v", call.method, call.path, err)
	}

	got := reply{Status: response.StatusCode, Header: response.Header, Raw: string(content)}
	if len(content) > 0 {
		if err := json.Unmarshal(content, &got.Body); err != nil {
			b.Fatalf("%s %s: the body is no JSON object: %v\n%s", call.method, call.path, err, content)
		}
	}

	return got
}

// checkAnswer holds every answer of every test against the rows that concern them all.
func (b *bench) checkAnswer(call call, got reply) {
	b.Helper()

	place := call.method + " " + call.path

	if sent, given := call.header["X-Broker-API-Request-Identity"]; !given && got.Header.Get("X-Broker-API-Request-Identity") != identity {
		b.Errorf("A7: %s: the request identity is not repeated", place)
	} else if given && got.Header.Get("X-Broker-API-Request-Identity") != sent {
		b.Errorf("A7: %s: the request identity is %q, not %q", place, got.Header.Get("X-Broker-API-Request-Identity"), sent)
	}

	if got.Raw != "" && got.Header.Get("Content-Type") != "application/json" {
		b.Errorf("A17: %s: the content type is %q", place, got.Header.Get("Content-Type"))
	}

	if code, given := got.Body["error"]; given && !regexp.MustCompile(`^([A-Z][a-z]+)+$`).MatchString(got.text("error")) {
		b.Errorf("A12: %s: the code is %v", place, code)
	}

	if description, given := got.Body["description"]; given || got.Status >= 400 {
		if text := got.text("description"); text == "" || utf8.RuneCountInString(text) > 255 {
			b.Errorf("A13, A26: %s: the description is %v", place, description)
		}
	}

	known := []string{
		"services", "operation", "dashboard_url", "metadata", "state", "description", "error",
		"service_id", "plan_id", "parameters", "maintenance_info", "credentials", "endpoints",
	}
	if call.method == http.MethodPatch && got.Status >= 400 || strings.Contains(call.path, "/last_operation") && got.text("state") == "failed" {
		known = append(known, "instance_usable", "update_repeatable")
	}

	if strings.HasSuffix(call.path, "/validate") { // our extension
		known = append(known, "valid", "errors", "resolved", "quota")
	}

	for field := range got.Body {
		if !slices.Contains(known, field) {
			b.Errorf("A10, A20: %s: the field %s is not one of the protocol", place, field)
		}
	}

	if !slices.Contains([]int{200, 201, 202, 304}, got.Status) && got.Status < 400 {
		b.Errorf("J16: %s: status %d", place, got.Status)
	}

	if got.Status >= 500 && !b.faulty {
		b.Errorf("J18: %s: status %d without a fault: %s", place, got.Status, got.Raw)
	}
}

// want fails the test unless the answer has the status and, if one is given, the code.
func (b *bench) want(reason string, got reply, status int, code ...string) reply {
	b.Helper()

	if got.Status != status || len(code) > 0 && got.text("error") != code[0] {
		b.Fatalf("\n%s\nwant %d %v, got %d %s", reason, status, code, got.Status, got.Raw)
	}

	return got
}
