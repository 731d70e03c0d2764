package operations_test

import (
	"fmt"
	"testing"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// TestClaimLimit checks that a claim never takes more operations than its limit. It prepares the claims on a table with few
// operations and executes them on a table with many operations, because with a plan for a small table PostgreSQL may evaluate a
// subquery again for each row.
func TestClaimLimit(t *testing.T) {
	const (
		limit = 5
		many  = 60
	)

	each(t, func(b fixture) {
		claim := func(pending bool) int {
			claimed, err := b.store.Claim(b.Context(), process.Claim{
				Due: process.Due{Kind: "provision", Pending: pending}, Owner: "one", Limit: limit, Now: start, Until: start,
			})
			if err != nil {
				b.Fatal(err)
			}

			return len(claimed)
		}

		b.accept("first", "first")

		if _, err := storage.Exec(b.Context(), b.db.Writer(), `ANALYZE`); err != nil {
			b.Fatal(err)
		}

		for range 2 * limit {
			claim(true)
			claim(false)
		}

		for i := range many {
			b.accept(fmt.Sprintf("op-%02d", i), fmt.Sprintf("instance-%02d", i))
		}

		for range 2 {
			if got := claim(true); got != limit {
				b.Errorf("claimed %d pending operations, want %d", got, limit)
			}
		}

		if got := claim(false); got > limit {
			b.Errorf("claimed %d waiting operations, want %d", got, limit)
		}
	})
}
