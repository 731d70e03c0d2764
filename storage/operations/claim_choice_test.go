package operations_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestWhatIsDueAgainIsTakenInItsOrder has more work due again than is claimed at a time.
func TestWhatIsDueAgainIsTakenInItsOrder(t *testing.T) {
	each(t, func(b bench) {
		due := map[string]time.Duration{"a": 2 * time.Second, "b": 4 * time.Second, "c": time.Second, "d": 3 * time.Second}

		for _, id := range []string{"a", "b", "c", "d"} {
			b.accept(id, "instance of "+id)
			record := b.claimOne("replica", id, start)
			record.NextRun = start.Add(due[id])
			b.save(process.Progress{Record: record, Release: true, Now: start})
		}

		// A database that knows how few rows there are reads them as they lie, unless it is told the order.
		if _, err := storage.Exec(b.Context(), b.db.Writer(), `ANALYZE`); err != nil {
			b.Fatal(err)
		}

		taken, now := []string{}, start.Add(time.Minute)

		for range due {
			claimed, err := b.store.Claim(b.Context(), process.Claim{
				Due: process.Due{Kind: "provision"}, Owner: "replica", Limit: 1, Now: now, Until: now.Add(leaseTime),
			})
			if err != nil {
				b.Fatal(err)
			}

			taken = append(taken, ids(claimed)...)
		}

		if diff := cmp.Diff([]string{"c", "a", "d", "b"}, taken); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}

// TestAReplicaThatLeavesFormerWorkAlone claims nothing that was accepted before it began, but for what is to be canceled.
func TestAReplicaThatLeavesFormerWorkAlone(t *testing.T) {
	begun := func(b bench) { b.claimOne("former", "op", start) }

	cases := map[string]struct {
		reason string
		// before is how long the operation was accepted before the replica began.
		before time.Duration
		story  func(b bench)
		want   []string
	}{
		"pending":          {"it is not to begin", time.Second, func(bench) {}, []string{}},
		"pending, new":     {"it was accepted when the replica was there", 0, func(bench) {}, []string{"op"}},
		"in progress":      {"it is not to go on", time.Second, begun, []string{}},
		"in progress, new": {"another replica has left it", 0, begun, []string{"op"}},
		"canceling": {"it has to end: a deletion waits for that", time.Second, func(b bench) {
			begun(b)
			b.cancel("instance", start)
		}, []string{"op"}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, func(b bench) {
				b.accept("op", "instance")
				c.story(b)

				now := start.Add(leaseTime + time.Second)
				claimed := storagetest.Claim(b, b.store, process.Claim{
					Owner: "replica", Limit: 1, Now: now, Until: now.Add(leaseTime), CreatedAfter: start.Add(c.before),
				}, "provision")

				if diff := cmp.Diff(c.want, ids(claimed)); diff != "" {
					b.Errorf("%s: -want +got\n%s", c.reason, diff)
				}
			})
		})
	}
}
