package bench

import (
	"time"

	domain "github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// claimLimit is the number of operations of a claim. The first claims fill caches and query plans.
	claimLimit   = 10
	claimsBefore = 20
	claims       = 80
)

// floorClaim claims the oldest rows of the floor.
const floorClaim = `WITH chosen AS MATERIALIZED (
	SELECT id FROM floor_operations WHERE state = 'pending' ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
	UPDATE floor_operations SET state = 'in progress' WHERE id IN (SELECT id FROM chosen) RETURNING *`

// measureClaims measures how many of the accepted operations per second the store claims, one claim after the other, in the benchmark's
// process. Each claim is a commit.
func (s *scope) measureClaims(e *environment) (measured sample) {
	s.within(func(s *scope) {
		db, keys := harness.OpenSealed(s, e.database)

		store, err := operations.Open(s.Context(), db, keys)
		s.check(err)

		prepared, err := e.db.PreparexContext(s.Context(), floorClaim) //nolint:sqlclosecheck // A false positive: see below.
		s.check(err)
		defer prepared.Close()

		measured.floor = s.claimRate(func() int {
			var claimed []struct {
				ID, State, Description, Payload string
				InstanceID                      string `db:"instance_id"`
			}

			s.check(prepared.SelectContext(s.Context(), &claimed, claimLimit))

			return len(claimed)
		})
		measured.broker = s.claimRate(func() int {
			now := time.Now()

			claimed, err := store.Claim(s.Context(), process.Claim{
				Due: process.Due{Kind: domain.KindProvision, Pending: true}, Owner: "bench", Limit: claimLimit, Now: now, Until: now.Add(time.Hour),
			})
			s.check(err)

			return len(claimed)
		})
	})

	return measured
}

// claimRate returns the number of claimed operations per second. It fails the scenario if too few operations are pending.
func (s *scope) claimRate(claim func() (claimed int)) float64 {
	s.Helper()

	for range claimsBefore {
		claim()
	}

	total, start := 0, time.Now()

	for range claims {
		total += claim()
	}

	took := time.Since(start)

	if total < claims*claimLimit/2 {
		s.Fatalf("%d claims returned %d operations", claims, total)
	}

	return float64(total) / took.Seconds()
}
