package notifications_test

import (
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/notifications"
)

// TestLostPosition checks that a replica which has lost the lease or the position adds nothing.
func TestLostPosition(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		upgrade := f.hold(environment.KindUpgradeKyma, "one")
		f.begin(upgrade)

		if _, err := f.events.Publish(f.Context(), now); err != nil {
			f.Fatal(err)
		}

		found, last, err := f.events.Read(f.Context(), notifications.Selected(), 0, 9)
		if err != nil || len(found) != 1 {
			f.Fatalf("found %+v, %v, want the start of the maintenance", found, err)
		}

		if held, err := f.store.Hold(f.Context(), "replica", now, now.Add(time.Minute)); err != nil || !held {
			f.Fatalf("held %t, %v", held, err)
		}

		for _, c := range []struct {
			reason, owner string
			position      int64
		}{{"another replica has the lease", "other", 0}, {"the position has moved", "replica", 1}} {
			if added, err := f.store.Add(f.Context(), c.owner, found, c.position, last); err != nil || added {
				f.Errorf("%s: added %t, %v", c.reason, added, err)
			}
		}

		if count, _, err := f.store.Backlog(f.Context()); count != 0 || err != nil {
			f.Errorf("%d messages, %v, want none", count, err)
		}
	})
}

// TestMessagesOfAnEarlierRelease checks that the rows which an earlier release wrote together with the changes are delivered, and that
// the end of an upgrade which it has begun follows.
func TestMessagesOfAnEarlierRelease(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		running, ended := f.hold(environment.KindUpgradeKyma, "one"), f.hold(environment.KindUpgradeCluster, "two")

		for _, c := range []struct {
			by      process.Record
			kind    string
			actions []string
		}{{running, "1", []string{"create", "begin"}}, {ended, "0", []string{"create", "begin", "finish"}}} {
			for i, action := range c.actions {
				if _, err := storage.Exec(f.Context(), f.db.Writer(), `INSERT INTO notifications
					(event_id, number, instance_id, event_type, action, happened_at, next_run_at, attempts, delivered)
					VALUES (?, ?, ?, ?, ?, ?, ?, 0, FALSE)`,
					c.by.ID, i+1, c.by.InstanceID, c.kind, action, storage.At(now), storage.At(now)); err != nil {
					f.Fatal(err)
				}
			}
		}

		f.begin(running) // its step runs again, on a new replica
		f.end(running, process.Succeeded)
		f.end(ended, process.Succeeded)
		f.wantSent("each message once",
			"upgradeCluster of two: two 0 create 03:04:05", "upgradeKyma of one: one 1 create 03:04:05",
			"upgradeCluster of two: two 0 begin 03:04:05", "upgradeKyma of one: one 1 begin 03:04:05",
			"upgradeCluster of two: two 0 finish 03:04:05", "upgradeKyma of one: one 1 finish 04:04:05")
	})
}
