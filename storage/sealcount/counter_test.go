package sealcount_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/sealcount"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// replica is a replica's counter, with its keys, clock, metrics and log.
type replica struct {
	*sealcount.Counter
	testing.TB

	registry *prometheus.Registry
	clock    *clocktesting.FakeClock
	log      *logtest.Hook
}

func newReplica(t *testing.T, db *storage.DB, keys secret.String) replica {
	t.Helper()

	ring, err := secret.ParseKeyring(keys)
	if err != nil {
		t.Fatal(err)
	}

	logger, hook := logtest.NewNullLogger()
	r := replica{TB: t, registry: prometheus.NewRegistry(), clock: clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)), log: hook}

	r.Counter, err = sealcount.Open(t.Context(), sealcount.Options{DB: db, Keys: ring, Clock: r.clock, Log: logger, Metrics: r.registry})
	if err != nil {
		t.Fatal(err)
	}

	return r
}

// seal seals values and stores their count.
func (r replica) seal(count int) {
	r.Helper()

	for range count {
		r.Keys.Seal([]byte("x"), "a test")
	}

	if err := r.Store(r.Context()); err != nil {
		r.Fatal(err)
	}
}

// want fails the test unless the metric has the count for the key and no other key.
func (r replica) want(key, count string) {
	r.Helper()

	text := `
# HELP environment_broker_sealed_values Values that all replicas have sealed with the first key of APP_DATABASE_SECRET_KEYS. Replace the key before the count reaches 4294967296.
# TYPE environment_broker_sealed_values gauge
environment_broker_sealed_values{key="` + key + `"} ` + count + `
`
	if err := testutil.GatherAndCompare(r.registry, strings.NewReader(text)); err != nil {
		r.Error(err)
	}
}

func TestValuesOfAllReplicasAreCounted(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		former, next := secret.NewKey("k1"), secret.NewKey("k2")
		one, two := newReplica(t, db, former), newReplica(t, db, former)

		one.seal(0)
		one.want("k1", "0")
		one.seal(3)
		two.seal(4)
		two.want("k1", "7")
		one.seal(0) // reads the values of the other
		one.want("k1", "7")
		one.seal(1)
		one.want("k1", "8")

		restarted := newReplica(t, db, former)
		restarted.seal(2)
		restarted.want("k1", "10")

		rotated := newReplica(t, db, next+","+former)
		rotated.seal(5)
		rotated.want("k2", "5")

		for _, r := range []replica{one, two, restarted, rotated} {
			if len(r.log.AllEntries()) > 0 {
				t.Errorf("logged %q", r.log.LastEntry().Message)
			}
		}
	})
}

func TestWarningBeforeTheLimit(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		r := newReplica(t, db, secret.NewKey("k1"))

		if _, err := storage.Exec(t.Context(), db.Writer(), `INSERT INTO seal_counts VALUES ('k1', ?)`, int64(sealcount.WarnAt-2)); err != nil {
			t.Fatal(err)
		}

		warnings := func(reason string, want int) {
			t.Helper()

			if got := r.log.AllEntries(); len(got) != want {
				t.Errorf("%s: got %d warnings, want %d", reason, len(got), want)
			}
		}

		r.seal(1)
		warnings("one value below half of the limit", 0)
		r.seal(1)
		warnings("half of the limit", 1)
		r.want("k1", "2.147483648e+09")

		last := r.log.LastEntry()
		if last.Level != logrus.WarnLevel || last.Data["key"] != "k1" || last.Data["values"] != int64(sealcount.WarnAt) || !strings.Contains(last.Message, "replace it") {
			t.Errorf("logged %v %q", last.Data, last.Message)
		}

		r.seal(1)
		warnings("a minute later", 1)
		r.clock.Step(time.Hour)
		r.seal(0)
		warnings("an hour later, without another value", 2)
	})
}

func TestCountIsStoredAtTheEnd(t *testing.T) {
	db, keys := storagetest.SQLite(t), secret.NewKey("k1")
	r := newReplica(t, db, keys)

	r.Keys.Seal([]byte("x"), "a test")

	stopped, stop := context.WithCancel(t.Context())
	stop()

	if err := r.Part().Run(stopped); err != nil {
		t.Fatal(err)
	}

	next := newReplica(t, db, keys)
	next.seal(0)
	next.want("k1", "1")
}
