package orders_test

import (
	"errors"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// constrained returns a Shoot whose HibernationPossible constraint has the given status.
func constrained(status gardencorev1beta1.ConditionStatus) gardencorev1beta1.Shoot {
	shoot := gardencorev1beta1.Shoot{}
	shoot.Status.Constraints = []gardencorev1beta1.Condition{{
		Type: gardencorev1beta1.ShootHibernationPossible, Status: status, Message: "a webhook would keep it from waking",
	}}

	return shoot
}

func TestHibernateAndWakeUp(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		runtimeID := f.createdRuntime("c-first")

		asleep, err := f.service.Hibernate(f.Context(), caller("tenant", "sleep"), runtimeID)
		if err != nil || asleep.Kind != operation.KindHibernate {
			f.Fatalf("the hibernation is accepted as %+v, %v", asleep, err)
		}

		if _, err := f.service.WakeUp(f.Context(), caller("tenant", "wake"), runtimeID); !failure.Is(err, failure.Conflict) {
			f.Errorf("a second operation: got %v, want a conflict", err)
		}

		f.finish(asleep.ID, process.Succeeded)
		f.shoot = constrained(gardencorev1beta1.ConditionFalse)

		again, err := f.service.Hibernate(f.Context(), caller("tenant", "sleep"), runtimeID)
		if err != nil || again.ID != asleep.ID {
			f.Errorf("the repeated call: got %+v, %v; want the first response", again, err)
		}

		awake, err := f.service.WakeUp(f.Context(), caller("tenant", "wake"), runtimeID)
		if err != nil || awake.Kind != operation.KindUpgradeShoot {
			f.Fatalf("the wake-up is accepted as %+v, %v; want a type that clients of Kyma Provisioner know", awake, err)
		}

		f.finish(awake.ID, process.Succeeded)
	})
}

func TestHibernationIsRefused(t *testing.T) {
	away := failure.New(failure.Transient, "Gardener is unavailable")

	for name, c := range map[string]struct {
		reason string
		shoot  gardencorev1beta1.Shoot
		unread error
		kind   failure.Kind
		want   string
	}{
		"not possible": {
			"a cluster that could not wake up must not be hibernated", constrained(gardencorev1beta1.ConditionFalse), nil,
			failure.Conflict, "cannot be hibernated now: a webhook would keep it from waking",
		},
		"unavailable": {"whether hibernation is possible is unknown", constrained(gardencorev1beta1.ConditionTrue), away, failure.Transient, "Gardener is unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			runtimeID := f.createdRuntime("c-first")
			f.shoot, f.getError = c.shoot, c.unread
			operations := f.count("operations")

			_, err := f.service.Hibernate(t.Context(), caller("tenant", "key"), runtimeID)
			if !failure.Is(err, c.kind) || !strings.Contains(failure.Of(err).Text, c.want) || f.count("operations") != operations {
				t.Errorf("%s: got %v", c.reason, err)
			}
		})
	}
}

func TestHibernation(t *testing.T) {
	asleep := constrained(gardencorev1beta1.ConditionTrue)
	asleep.Status.IsHibernated = true

	away := failure.New(failure.Transient, "Gardener is unavailable")

	for name, c := range map[string]struct {
		reason string
		shoot  gardencorev1beta1.Shoot
		unread error
		want   *orders.Hibernation
	}{
		"awake":        {"hibernation is possible", constrained(gardencorev1beta1.ConditionTrue), nil, &orders.Hibernation{Hibernated: false, Possible: true}},
		"asleep":       {"the cluster is hibernated", asleep, nil, &orders.Hibernation{Hibernated: true, Possible: false}},
		"not possible": {"Gardener reports a constraint", constrained(gardencorev1beta1.ConditionFalse), nil, &orders.Hibernation{Hibernated: false, Possible: false}},
		"unavailable":  {"the other fields are returned with the error", gardencorev1beta1.Shoot{}, away, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			runtimeID := f.createdRuntime("c-first")
			f.shoot, f.getError = c.shoot, c.unread

			got, err := f.service.RuntimeStatus(t.Context(), caller("tenant", ""), runtimeID, orders.RuntimeFields{Hibernation: true})
			if !errors.Is(err, c.unread) || got.Operation == nil {
				t.Fatalf("%s: got %+v, %v", c.reason, got, err)
			}

			if diff := cmp.Diff(c.want, got.Hibernation); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestMaintenanceWindow(t *testing.T) {
	away := failure.New(failure.Transient, "Gardener is unavailable")

	for name, c := range map[string]struct {
		reason string
		spec   *gardencorev1beta1.Maintenance
		unread error
		want   *orders.MaintenanceWindow
	}{
		"window":      {"as in the Shoot", &gardencorev1beta1.Maintenance{TimeWindow: &gardencorev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"}}, nil, &orders.MaintenanceWindow{Begin: "220000+0100", End: "230000+0100"}},
		"no window":   {"Gardener has not chosen one", &gardencorev1beta1.Maintenance{}, nil, nil},
		"none":        {"the Shoot has no maintenance", nil, nil, nil},
		"unavailable": {"the other fields are returned with the error", nil, away, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			runtimeID := f.createdRuntime("c-first")
			f.shoot.Spec.Maintenance, f.getError = c.spec, c.unread

			got, err := f.service.RuntimeStatus(t.Context(), caller("tenant", ""), runtimeID, orders.RuntimeFields{Maintenance: true})
			if !errors.Is(err, c.unread) || got.Operation == nil {
				t.Fatalf("%s: got %+v, %v", c.reason, got, err)
			}

			if diff := cmp.Diff(c.want, got.Maintenance); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}
