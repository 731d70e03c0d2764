package operations_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestDueOperationsAreClaimedInOrder claims fewer operations than are due.
func TestDueOperationsAreClaimedInOrder(t *testing.T) {
	each(t, func(b fixture) {
		due := map[string]time.Duration{"a": 2 * time.Second, "b": 4 * time.Second, "c": time.Second, "d": 3 * time.Second}

		for _, id := range []string{"a", "b", "c", "d"} {
			b.accept(id, "instance of "+id)
			record := b.claimOne("replica", id, start)
			record.NextRun = start.Add(due[id])
			b.save(process.Progress{Record: record, Release: true, Now: start})
		}

		// If the statistics report few rows in the table, the database reads the rows in their physical order, unless the
		// query has ORDER BY.
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

// TestClaimCreatedAfter checks that a claim excludes operations that were accepted too early, unless they are canceling.
func TestClaimCreatedAfter(t *testing.T) {
	begun := func(b fixture) { b.claimOne("former", "op", start) }

	cases := map[string]struct {
		reason string
		// before is the time from the acceptance of the operation to the CreatedAfter of the claim.
		before time.Duration
		story  func(b fixture)
		want   []string
	}{
		"pending":          {"it may not start", time.Second, func(fixture) {}, []string{}},
		"pending, new":     {"it was accepted while the replica was ready", 0, func(fixture) {}, []string{"op"}},
		"in progress":      {"old operations must not continue", time.Second, begun, []string{}},
		"in progress, new": {"another replica returned it", 0, begun, []string{"op"}},
		"canceling": {"a deletion waits until the operation has ended", time.Second, func(b fixture) {
			begun(b)
			b.cancel("instance", start)
		}, []string{"op"}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, func(b fixture) {
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
