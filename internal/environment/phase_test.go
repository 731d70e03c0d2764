package environment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

func TestPhaseOf(t *testing.T) {
	did := func(kind string, state process.State) process.Record {
		return process.Record{Kind: kind, State: state, StartedAt: time.Unix(1, 0)}
	}
	neverBegun := func(kind string) process.Record { return process.Record{Kind: kind, State: process.Canceled} }
	made, suspended := did(environment.KindProvision, process.Succeeded), did(environment.KindSuspend, process.Succeeded)

	cases := map[string]struct {
		reason     string
		operations []process.Record // newest first
		want       environment.Phase
		unfinished int
	}{
		"none":                   {"without operations", nil, environment.Unknown, 0},
		"creating":               {"a pending creation", []process.Record{{Kind: environment.KindProvision, State: process.Pending}}, environment.Creating, 1},
		"creation canceled":      {"a creation canceled before its start", []process.Record{neverBegun(environment.KindProvision)}, environment.CreationFailed, 0},
		"active":                 {"a finished creation", []process.Record{made}, environment.Active, 0},
		"updating":               {"an update keeps the phase", []process.Record{did(environment.KindUpdate, process.InProgress), made}, environment.Active, 1},
		"update failed":          {"a failed update keeps the phase", []process.Record{did(environment.KindUpdate, process.Failed), made}, environment.Active, 0},
		"suspending":             {"a deletion in progress", []process.Record{did(environment.KindSuspend, process.InProgress), made}, environment.Suspending, 1},
		"suspension failed":      {"the runtime may be partly removed", []process.Record{did(environment.KindSuspend, process.Failed), made}, environment.SuspensionFailed, 0},
		"suspension not started": {"the runtime is untouched", []process.Record{neverBegun(environment.KindSuspend), made}, environment.Active, 0},
		"suspended":              {"a finished suspension", []process.Record{suspended, made}, environment.Suspended, 0},
		"resumption not started": {"no runtime was ordered", []process.Record{neverBegun(environment.KindResume), suspended, made}, environment.Suspended, 0},
		"resumption canceled":    {"a runtime may have been ordered", []process.Record{did(environment.KindResume, process.Canceled), suspended, made}, environment.ResumptionFailed, 0},
		"resumed":                {"a finished resumption", []process.Record{did(environment.KindResume, process.Succeeded), suspended, made}, environment.Active, 0},
		"deleting":               {"a deletion overrides other operations", []process.Record{did(environment.KindDeprovision, process.Canceling), suspended, made}, environment.Deleting, 1},
		"deletion failed":        {"a failed deletion may have deleted some objects", []process.Record{did(environment.KindDeprovision, process.Failed), made}, environment.DeletionFailed, 0},
		"others' operations":     {"operations on bindings do not affect the phase", []process.Record{did("bind", process.InProgress), made}, environment.Active, 0},
	}

	for name, c := range cases {
		if got := environment.PhaseOf(c.operations); got != c.want {
			t.Errorf("%s: %s: want %s, got %s", name, c.reason, c.want, got)
		}

		if got := len(environment.Unfinished(c.operations)); got != c.unfinished {
			t.Errorf("%s: %d operations are unfinished, want %d", name, got, c.unfinished)
		}
	}
}

func TestUpdateIsAppliedOnce(t *testing.T) {
	instance := environment.Instance{PlanID: "plan", GlobalAccountID: "first", Request: environment.Request{
		Parameters: []byte(`{"autoScalerMin": 1, "zones": ["a"]}`), Context: []byte(`{"big": 12345678901234567890, "active": true}`),
	}}
	change := environment.UnchangedUpdate(instance)

	updated, err := change.Apply(instance)
	if diff := cmp.Diff(instance, updated); diff != "" || err != nil {
		t.Errorf("an update without changes must have no effect: -want +got\n%s%v", diff, err)
	}

	change.Parameters, change.Context = []byte(`{"autoScalerMin": 2}`), []byte(`{"active": false}`)
	change.GlobalAccountID, change.PlanID, change.Cluster.AutoScalerMin = "second", "larger", 2

	want := environment.Instance{PlanID: "larger", GlobalAccountID: "second", SubscriptionAccountID: "first", Request: environment.Request{
		Parameters: []byte(`{"autoScalerMin":2,"zones":["a"]}`), Context: []byte(`{"active":false,"big":12345678901234567890}`),
		Initial: &environment.InitialOrder{PlanID: "plan", Parameters: instance.Request.Parameters},
		Cluster: environment.Cluster{AutoScalerMin: 2},
	}}

	for range 2 {
		if instance, err = change.Apply(instance); err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, instance); diff != "" {
			t.Errorf("an update must have the same effect if it is applied again: -want +got\n%s", diff)
		}
	}
}

func TestUpdateKeepsExpiry(t *testing.T) {
	lasting := environment.Instance{PlanID: "plan", ExpiresAt: time.Unix(1000, 0)}
	change := environment.UnchangedUpdate(lasting)
	change.ExpiresAt = time.Unix(2000, 0)

	expired := lasting
	expired.ExpiresAt, expired.ExpiredAt = time.Unix(500, 0), time.Unix(500, 0)

	moved := lasting
	moved.ExpiresAt = change.ExpiresAt

	for reason, c := range map[string]struct{ instance, want environment.Instance }{
		"a change of plan changes the expiry":    {lasting, moved},
		"the instance expired during the update": {expired, expired},
	} {
		if got, err := change.Apply(c.instance); err != nil || !cmp.Equal(c.want, got) {
			t.Errorf("%s: %v -want +got\n%s", reason, err, cmp.Diff(c.want, got))
		}
	}
}
