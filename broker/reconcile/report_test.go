package reconcile_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/reconcile"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/reports"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// pages serves the pages of a comparison, and counts the calls.
type pages struct {
	all  []operatorserver.Compared
	err  error
	read int
}

func (p *pages) Compare(_ context.Context, request operatorserver.Comparison) (operatorserver.Compared, error) {
	p.read++

	if p.err != nil {
		return operatorserver.Compared{}, p.err
	}

	if request.After == "" {
		return p.all[0], nil
	}

	return p.all[1], nil
}

func (*pages) Restore(context.Context, operatorapi.Difference) error { return errors.New("not called") }

// TestReport makes reports on two replicas and reads their metrics.
func TestReport(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		store, err := reports.Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}

		clock := clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
		found := &pages{all: []operatorserver.Compared{
			{Differences: []operatorapi.Difference{{Kind: operatorapi.DifferenceKindShootWithoutRuntime}}, Next: "x"},
			{Differences: []operatorapi.Difference{{Kind: operatorapi.DifferenceKindShootWithoutRuntime}}, Incomplete: []string{"Director"}},
		}}
		one := reconcile.Reporter{Differences: found, Reports: store, Interval: time.Hour, Clock: clock, Log: logging.Discard()}
		other := one

		report := func(reporter reconcile.Reporter, wantRead int) {
			t.Helper()

			if err := reporter.Report(t.Context()); err != nil && found.err == nil {
				t.Error(err)
			}

			if found.read != wantRead {
				t.Errorf("want %d pages, got %d", wantRead, found.read)
			}
		}

		report(one, 0) // the first one is due after an hour

		if count := testutil.CollectAndCount(one); count != 0 {
			t.Errorf("%d metrics before the first report", count)
		}

		clock.Step(time.Hour)
		report(one, 2)
		report(other, 2) // one replica is enough

		const want = `
# HELP environment_broker_differences_not_compared Systems that the newest report has not compared. All replicas report the same value.
# TYPE environment_broker_differences_not_compared gauge
environment_broker_differences_not_compared 1
`
		if err := testutil.CollectAndCompare(other, strings.NewReader(want), "environment_broker_differences_not_compared"); err != nil {
			t.Error(err)
		}

		if count := testutil.CollectAndCount(other, "environment_broker_differences"); count != 6 {
			t.Errorf("want a metric for each of the 6 kinds, got %d", count)
		}

		clock.Step(time.Hour)
		found.err = errors.New("no database")
		report(one, 3)
		report(other, 3) // a failed report waits for the next interval

		one.Interval = 0
		clock.Step(24 * time.Hour)
		report(one, 3)
	})
}

// TestProvisioner checks the errors for responses of Provisioners, and the address of the operator API.
func TestProvisioner(t *testing.T) {
	cases := map[string]struct {
		status   int
		body     string
		want     string
		wantKind failure.Kind
	}{
		"unauthorized": {http.StatusUnauthorized, "{}", "correct APP_PROVISIONER_USER and APP_PROVISIONER_PASSWORD", failure.Permanent},
		"forbidden":    {http.StatusForbidden, "{}", "needs the operator role", failure.Permanent},
		"Kyma":         {http.StatusNotFound, "404 page not found", "Kyma Provisioner", failure.Permanent},
		"page":         {http.StatusOK, "<html>internal-host</html>", "not JSON", failure.Permanent},
		"away":         {http.StatusBadGateway, "internal-host", "HTTP status 502", failure.Transient},
		"endless":      {http.StatusOK, strings.Repeat(" ", 9<<20), "did not respond", failure.Transient},
	}

	for name, test := range cases {
		var path, user string

		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path = r.URL.Path
			user, _, _ = r.BasicAuth()
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.body))
		}))

		address, err := url.Parse(server.URL + "/prefix/graphql")
		if err != nil {
			t.Fatal(err)
		}

		address.User = url.UserPassword("broker", "secret")

		_, err = reconcile.NewProvisioner(address, http.DefaultTransport).Runtime(t.Context(), "a/b")
		if text := failure.Of(err).Text; !strings.Contains(text, test.want) || strings.Contains(text, "internal-host") || failure.KindOf(err) != test.wantKind {
			t.Errorf("%s: got %v", name, err)
		}

		if path != "/prefix/runtimes/a/b" || user != "broker" {
			t.Errorf("%s: the request of %q is for %s", name, user, path)
		}

		server.Close()
	}
}
