package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// upgradeTimes simulates an upgrade that has a deadline and waits until finished is set. It stores the chosen times.
type upgradeTimes struct {
	deadline time.Time
	finished bool
	chosen   []time.Time
}

func (u *upgradeTimes) Choose(_ context.Context, _ storage.Tx, _ string, at, now time.Time, _ string) error {
	switch {
	case u.finished:
		return failure.New(failure.Conflict, "No upgrade waits.")
	case at.Before(now), !at.Before(u.deadline):
		return failure.New(failure.Invalid, "The time must be before the deadline.")
	}

	u.chosen = append(u.chosen, at)

	return nil
}

// TestUpgradeTime chooses the time of an upgrade with an update. A platform that sends the same time again later gets no error.
func TestUpgradeTime(t *testing.T) {
	times := &upgradeTimes{}
	b := newFixture(t, func(options *broker.Options) { options.UpgradeTimes = times })
	times.deadline = b.clock.Now().Add(24 * time.Hour)
	choose := func(at string) map[string]any { return with("parameters", with("upgradeTime", at)) }

	b.want("a time in an order", b.put(instanceID, order(with("parameters", map[string]any{"region": "eu-west-1", "upgradeTime": "2030-01-02T22:00:00Z"}))), 400)
	b.move(b.want("an order", b.put(instanceID, order()), 202).text("operation"), process.Succeeded)

	for _, bad := range []string{"", "tomorrow", "2030-01-02T22:00:00", "2030-01-01T22:00:00Z", "2030-01-04T22:00:00Z"} {
		b.want("a bad time: "+bad, b.patch(instanceID, choose(bad)), 400)
	}

	if len(times.chosen) != 0 {
		t.Errorf("bad times were chosen: %v", times.chosen)
	}

	b.want("a time, which changes nothing else", b.patch(instanceID, choose("2030-01-02T22:00:00Z")), 200)
	b.want("another time with a change of the cluster",
		b.patch(instanceID, with("parameters", map[string]any{"upgradeTime": "2030-01-02T23:00:00Z", "autoScalerMax": 9})), 202)

	if got := times.chosen; len(got) < 2 || got[len(got)-1].Hour() != 23 {
		t.Errorf("the chosen times are %v", got)
	}

	b.move(b.carried(instanceID)[0].ID, process.Succeeded)

	times.finished = true

	if got := b.get(instanceID); got.Body["parameters"].(map[string]any)["upgradeTime"] == nil {
		t.Errorf("the instance has %s", got.Raw)
	}

	stored, _ := b.get(instanceID).Body["parameters"].(map[string]any)["upgradeTime"].(string)
	b.want("the repeated time, after the upgrade", b.patch(instanceID, choose(stored)), 200)
	b.want("another time, after the upgrade", b.patch(instanceID, choose("2030-01-02T21:00:00Z")), 422)
}

// TestChosenUpgradeTimesAreAudited checks that the audit log has each time that the owner chooses, even if the instance already
// has the same parameter from an earlier upgrade.
func TestChosenUpgradeTimesAreAudited(t *testing.T) {
	times := &upgradeTimes{}
	b := newFixture(t, func(options *broker.Options) { options.UpgradeTimes = times })
	times.deadline = b.clock.Now().Add(24 * time.Hour)
	choose := with("parameters", with("upgradeTime", "2030-01-02T22:00:00Z"))

	b.move(b.want("an order", b.put(instanceID, order()), 202).text("operation"), process.Succeeded)

	for _, reason := range []string{"a time", "the same time again, for the retried upgrade"} {
		b.later()
		b.want(reason, b.patch(instanceID, choose), 200)
	}

	entries, err := b.entries.List(t.Context(), auditlog.Filter{InstanceID: instanceID, Action: auditlog.ActionUpdate, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}

	if len(entries) != 2 || entries[0].After["upgradeTime"] != "2030-01-02T22:00:00Z" || entries[1].After["upgradeTime"] != "2030-01-02T22:00:00Z" {
		t.Errorf("want an entry with each chosen time, got %+v", entries)
	}
}
