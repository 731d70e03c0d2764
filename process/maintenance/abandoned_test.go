package maintenance_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// abandoned implements maintenance.Abandoned with the records of one instance.
type abandoned struct {
	*stepstest.Objects

	// upgrading reports that another upgrade has begun.
	upgrading bool
}

func (a abandoned) Abandoned(_ context.Context, after string, _ int) ([]environment.OutsideObject, error) {
	var marks []environment.OutsideObject

	for _, object := range a.Records {
		evaluation := object.Kind == environment.KindInternalEvaluation || object.Kind == environment.KindExternalEvaluation

		if !evaluation && object.InstanceID > after && !a.upgrading {
			marks = append(marks, object)
		}
	}

	return marks, nil
}

func (a abandoned) OfInstance(ctx context.Context, id string) ([]environment.OutsideObject, error) {
	return a.ObjectsIn(ctx, id, environment.SystemAvS)
}

func (a abandoned) Drop(ctx context.Context, object environment.OutsideObject) error {
	return a.RemoveObject(ctx, operation(), object)
}

// TestRestoreAbandoned restores the states after an upgrade that failed. An upgrade in progress keeps its maintenance.
func TestRestoreAbandoned(t *testing.T) {
	simulated, rows, maintained := newMaintenance(t, avs.Inactive, avs.Active)
	if err := maintained.Begin(t.Context(), operation()); err != nil {
		t.Fatal(err)
	}

	found := abandoned{Objects: rows, upgrading: true}
	want := func(reason string, want ...avs.Lifecycle) {
		t.Helper()

		if diff := cmp.Diff(want, states(simulated, rows)); diff != "" {
			t.Errorf("%s: -want +got\n%s", reason, diff)
		}
	}

	if err := maintained.RestoreAbandoned(t.Context(), found); err != nil {
		t.Error(err)
	}

	want("the upgrade runs", avs.Maintenance, avs.Maintenance)

	found.upgrading = false
	rows.Broken = rows.Writes + 1 // the first record cannot be removed

	if err := maintained.RestoreAbandoned(t.Context(), found); !failure.Is(err, failure.Transient) {
		t.Errorf("an error is not returned: %v", err)
	}

	want("an error does not stop the other restorations", avs.Inactive, avs.Active)

	if len(rows.Records) != 3 {
		t.Errorf("the records are %v, want one mark", rows.Records)
	}

	if err := maintained.RestoreAbandoned(t.Context(), found); err != nil || len(rows.Records) != 2 {
		t.Errorf("the next run: %v, records %v", err, rows.Records)
	}

	want("a repeated restoration changes nothing", avs.Inactive, avs.Active)
}
