package bench

import (
	"time"

	domain "github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// claimLimit is the number of operations in one claim. claimsBefore claims run before the measurement and fill caches and query
	// plans.
	claimLimit   = 10
	claimsBefore = 20
	claims       = 100
	// claimed is the number of operations that all claims take together.
	claimed = (claimsBefore + claims) * claimLimit
)

// floorClaim claims the oldest pending rows of the floor.
const floorClaim = `WITH chosen AS MATERIALIZED (
	SELECT id FROM floor_operations WHERE state = 'pending' ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
	UPDATE floor_operations SET state = 'in progress' WHERE id IN (SELECT id FROM chosen) RETURNING *`

// measureClaims measures how many accepted operations per second the store claims, in sequential claims from the benchmark's
// process. Each claim is committed separately.
func (s *scope) measureClaims(e *environment) (measured sample) {
	s.within(func(s *scope) {
		db, keys := harness.OpenSealed(s, e.database)

		store, err := operations.Open(s.Context(), db, keys)
		s.check(err)

		prepared, err := e.db.PreparexContext(s.Context(), floorClaim) //nolint:sqlclosecheck // A false positive: see below.
		s.check(err)
		defer prepared.Close()

		measured = s.claimRates(func() int {
			now := time.Now()

			claimed, err := store.Claim(s.Context(), process.Claim{
				Due: process.Due{Kind: domain.KindProvision, Pending: true}, Owner: "bench", Limit: claimLimit, Now: now, Until: now.Add(time.Hour),
			})
			s.check(err)

			return len(claimed)
		}, func() int {
			var claimed []struct {
				ID, State, Description, Payload string
				InstanceID                      string `db:"instance_id"`
			}

			s.check(prepared.SelectContext(s.Context(), &claimed, claimLimit))

			return len(claimed)
		})
	})

	return measured
}

// claimRates returns how many operations per second the broker's store and the floor claim, by the medians of their claims. The claims
// alternate, so that both are affected alike when the speed of the disk changes from one second to the next.
func (s *scope) claimRates(broker, floor func() (claimed int)) sample {
	s.Helper()

	var took [2][]time.Duration

	for number := range claimsBefore + claims {
		for i, claim := range []func() int{floor, broker} {
			start := time.Now()

			if claimed := claim(); claimed != claimLimit {
				s.Fatalf("claim %d returned %d operations, want %d", number, claimed, claimLimit)
			}

			if number >= claimsBefore {
				took[i] = append(took[i], time.Since(start))
			}
		}
	}

	return sample{floor: claimLimit / report.Median(took[0]).Seconds(), broker: claimLimit / report.Median(took[1]).Seconds()}
}
