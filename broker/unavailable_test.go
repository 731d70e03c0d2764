package broker_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// troubledCalls returns requests that need the database.
func troubledCalls() []call {
	return []call{
		{method: "PUT", path: path("new") + "?accepts_incomplete=true", body: order()},
		{method: "GET", path: path(instanceID)},
		{method: "GET", path: path(instanceID) + "/last_operation"},
		{method: "DELETE", path: path(instanceID) + "?accepts_incomplete=true" + ids},
	}
}

// patient fails the test unless each of the troubledCalls gets a 503 with Retry-After within the given limit.
func (b *fixture) patient(reason string, limit time.Duration) {
	b.Helper()

	var waiting sync.WaitGroup

	for _, call := range troubledCalls() {
		waiting.Go(func() {
			start := time.Now()

			got := b.do(call)
			if got.Status != 503 || got.Header.Get("Retry-After") == "" {
				b.Errorf("%s: %s %s returned %d with Retry-After %q", reason, call.method, call.path, got.Status, got.Header.Get("Retry-After"))
			}

			if took := time.Since(start); took > limit {
				b.Errorf("%s: %s %s took %s", reason, call.method, call.path, took)
			}
		})
	}

	waiting.Wait()
}

func TestDatabaseIsDown(t *testing.T) {
	config, line := postgrestest.Through(t, storagetest.Postgres(t))

	b := newFixtureOn(t, storagetest.Open(t, config))
	b.provisioned(instanceID)

	b.faulty = true

	line.Cut()
	b.patient("the database does not respond", 9*time.Second) // less than requestLimit
	b.want("the catalog needs no database", b.do(call{method: "GET", path: "/v2/catalog"}), 200)

	line.Mend()
	b.want("the broker recovers", b.do(troubledCalls()[0]), 202)
}

func TestSilentDatabaseDoesNotBlockRequests(t *testing.T) {
	config, line := postgrestest.Through(t, storagetest.Postgres(t))

	b := newFixtureOn(t, storagetest.Open(t, config))
	b.provisioned(instanceID)

	b.faulty = true

	line.Freeze()
	b.patient("the database is frozen", 40*time.Second)
	line.Thaw()
	b.want("the broker recovers", b.do(troubledCalls()[1]), 200)
	b.want("the rejected request succeeds", b.do(troubledCalls()[0]), 202)
}

func TestFullDatabaseRejectsOrders(t *testing.T) {
	const most = 500 // far more than the pool has connections

	db := storagetest.SQLite(t)
	b := newFixtureOn(t, db)
	b.faulty = true

	storagetest.Fill(t, db)

	var accepted []string

	for len(accepted) < most {
		id := fmt.Sprintf("order-%d", len(accepted))
		got := b.do(call{method: "PUT", path: path(id) + "?accepts_incomplete=true", body: order()})

		if got.Status != http.StatusAccepted {
			b.want("the disk is full", got, 503)

			if got.Header.Get("Retry-After") == "" {
				b.Error("Retry-After is missing")
			}

			break
		}

		accepted = append(accepted, id)
	}

	if len(accepted) == most {
		t.Fatal("the disk did not fill up")
	}

	for _, id := range accepted {
		b.want("the accepted operation exists", b.do(call{method: "GET", path: path(id) + "/last_operation"}), 200)
	}

	storagetest.Empty(t, db)
	b.want("requests succeed again", b.do(call{method: "PUT", path: path("later") + "?accepts_incomplete=true", body: order()}), 202)
}
