package operations_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestDueOperationsAreClaimedInOrder checks that a claim with a limit takes the operations that have been due longest.
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

// TestTenantsTakeTurns checks that claims alternate between tenants, even if one tenant has ordered many operations first. A
// tenant joins at the turn that is next when its first operation is accepted: it does not save up turns while it has no operations.
func TestTenantsTakeTurns(t *testing.T) {
	each(t, func(b fixture) {
		now := start
		accept := func(tenant string, ids ...string) {
			for _, id := range ids {
				now = now.Add(time.Hour)

				if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
					return b.store.Accept(b.Context(), tx, process.New{
						ID: id, Kind: "provision", InstanceID: "instance of " + id, Tenant: tenant, Payload: json.RawMessage(`{}`), At: now,
					})
				}); err != nil {
					b.Fatal(err)
				}
			}
		}

		var taken []string

		claim := func(times int) {
			for range times {
				claimed, err := b.store.Claim(b.Context(), process.Claim{
					Due: process.Due{Kind: "provision", Pending: true}, Owner: "replica", Limit: 1, Now: now, Until: now.Add(leaseTime),
				})
				if err != nil {
					b.Fatal(err)
				}

				taken = append(taken, ids(claimed)...)
			}
		}

		accept("flood", "f1", "f2", "f3", "f4")
		claim(2) // the flood has had two turns
		accept("other", "o1", "o2")
		accept("flood", "f5")
		claim(3)
		accept("late", "l1", "l2")
		claim(4)

		want := []string{"f1", "f2", "f3", "o1", "f4", "o2", "l1", "f5", "l2"}
		if diff := cmp.Diff(want, taken); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}

// TestClaimCreatedAfter checks that a claim excludes operations that were accepted too early, unless they are canceling.
func TestClaimCreatedAfter(t *testing.T) {
	begun := func(b fixture) { b.claimOne("former", "op", start) }

	cases := map[string]struct {
		reason string
		// before is how long before CreatedAfter the operation was accepted.
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
