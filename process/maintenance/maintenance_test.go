package maintenance_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/maintenance"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

func operation() process.Record {
	return process.Record{ID: "op-1", InstanceID: "instance-1"}
}

// newMaintenance returns an AvS with both evaluations of the instance, in the given states.
func newMaintenance(t *testing.T, internal, external avs.Lifecycle) (*fakeavs.AvS, *stepstest.Objects, maintenance.Maintenance) {
	t.Helper()

	simulated := fakeavs.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := fakeavs.Config(server.URL)
	config.Timeout = 10 * time.Second
	client := avs.New(config, http.DefaultTransport)

	rows := stepstest.New()

	for kind, lifecycle := range map[string]avs.Lifecycle{environment.KindInternalEvaluation: internal, environment.KindExternalEvaluation: external} {
		id, err := client.CreateInternal(t.Context(), avs.Cluster{InstanceID: "instance-1", Name: kind})
		if err != nil {
			t.Fatal(err)
		}

		if err := client.SetLifecycle(t.Context(), id, lifecycle); err != nil {
			t.Fatal(err)
		}

		rows.Records = append(rows.Records, environment.OutsideObject{
			InstanceID: "instance-1", System: environment.SystemAvS, Kind: kind, Key: id, State: environment.OutsideCreated,
		})
	}

	return simulated, rows, maintenance.Maintenance{AvS: client, Objects: rows}
}

// states returns the states of the evaluations: the internal one, then the external one.
func states(simulated *fakeavs.AvS, rows *stepstest.Objects) []avs.Lifecycle {
	all := simulated.Lifecycles()

	return []avs.Lifecycle{all[rows.Of(environment.KindInternalEvaluation).Key], all[rows.Of(environment.KindExternalEvaluation).Key]}
}

func TestMaintenance(t *testing.T) {
	cases := map[string]struct {
		reason             string
		internal, external avs.Lifecycle
	}{
		"Active":      {"the usual state", avs.Active, avs.Active},
		"Former":      {"a former state is restored", avs.Inactive, avs.Active},
		"Maintenance": {"what somebody else has set into maintenance stays so", avs.Maintenance, avs.Active},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated, rows, maintained := newMaintenance(t, c.internal, c.external)

			for range 2 {
				if err := maintained.Begin(t.Context(), operation()); err != nil {
					t.Error(err)
				}
			}

			if diff := cmp.Diff([]avs.Lifecycle{avs.Maintenance, avs.Maintenance}, states(simulated, rows)); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}

			for range 2 {
				if err := maintained.End(t.Context(), operation()); err != nil {
					t.Error(err)
				}
			}

			if diff := cmp.Diff([]avs.Lifecycle{c.internal, c.external}, states(simulated, rows)); diff != "" || len(rows.Records) != 2 {
				t.Errorf("%s: records %v, -want +got\n%s", c.reason, rows.Records, diff)
			}
		})
	}
}

// TestEveryFault injects a fault into each call and each write. A repeated Begin or End always has its full effect.
func TestEveryFault(t *testing.T) {
	repeat := func(t *testing.T, work func(context.Context, process.Record) error) (failed bool) {
		t.Helper()

		for range 3 {
			if err := work(t.Context(), operation()); err == nil {
				return failed
			} else if !failure.Is(err, failure.Transient) {
				t.Fatal(err)
			}

			failed = true
		}

		t.Fatal("the call fails again and again")

		return failed
	}

	check := func(t *testing.T, inject func(*fakeavs.AvS, *stepstest.Objects)) (reached bool) {
		t.Helper()

		simulated, rows, maintained := newMaintenance(t, avs.Inactive, avs.Active)
		inject(simulated, rows)

		reached = repeat(t, maintained.Begin)

		if diff := cmp.Diff([]avs.Lifecycle{avs.Maintenance, avs.Maintenance}, states(simulated, rows)); diff != "" {
			t.Errorf("after Begin: -want +got\n%s", diff)
		}

		reached = repeat(t, maintained.End) || reached

		if diff := cmp.Diff([]avs.Lifecycle{avs.Inactive, avs.Active}, states(simulated, rows)); diff != "" || len(rows.Records) != 2 {
			t.Errorf("after End: records %v, -want +got\n%s", rows.Records, diff)
		}

		return reached
	}

	const writes = 6 // two records, two marks as set, two removals

	for broken := range writes {
		t.Run(fmt.Sprintf("write %d", broken+1), func(t *testing.T) {
			if !check(t, func(_ *fakeavs.AvS, rows *stepstest.Objects) { rows.Broken = broken + 1 }) {
				t.Error("the fault was not reached")
			}
		})
	}

	for _, fault := range []simulator.Fault{
		{Operation: "getEvaluation", Status: http.StatusBadGateway},
		{Operation: "getEvaluation", Body: "<html>"},
		{Operation: "setLifecycle", Lost: true},
		{Operation: "setLifecycle", Unsent: true},
		{Operation: "setLifecycle", Status: http.StatusServiceUnavailable},
	} {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			if !check(t, func(simulated *fakeavs.AvS, _ *stepstest.Objects) { simulated.Inject(fault) }) {
				t.Error("the fault was not reached")
			}
		})
	}
}

func TestMaintenanceWithoutEvaluations(t *testing.T) {
	simulated, rows, maintained := newMaintenance(t, avs.Active, avs.Active)

	// Somebody has removed the evaluations from AvS, one of them before and one during the maintenance.
	gone := func(status int) simulator.Fault {
		return simulator.Fault{Operation: "getEvaluation", Status: status}
	}
	simulated.Inject(gone(http.StatusNotFound))

	if err := maintained.Begin(t.Context(), operation()); err != nil || len(rows.Records) != 3 {
		t.Errorf("records %v, %v", rows.Records, err)
	}

	simulated.Inject(simulator.Fault{Operation: "setLifecycle", Status: http.StatusNotFound})

	if err := maintained.End(t.Context(), operation()); err != nil || len(rows.Records) != 2 {
		t.Errorf("records %v, %v", rows.Records, err)
	}

	rows.Records = nil

	before := len(simulated.Calls())
	for _, work := range []func(context.Context, process.Record) error{maintained.Begin, maintained.End} {
		if err := work(t.Context(), operation()); err != nil || len(simulated.Calls()) != before {
			t.Errorf("an instance without evaluations: %v, calls %v", err, simulated.Calls()[before:])
		}
	}
}

func TestMaintenanceWithAvSSwitchedOff(t *testing.T) {
	_, rows, maintained := newMaintenance(t, avs.Active, avs.Active)
	off := maintenance.Maintenance{Objects: rows}

	if err := off.Begin(t.Context(), operation()); err != nil || len(rows.Records) != 2 {
		t.Errorf("without AvS: %v", err)
	}

	if err := maintained.Begin(t.Context(), operation()); err != nil {
		t.Fatal(err)
	}

	if err := off.End(t.Context(), operation()); !failure.Is(err, failure.Permanent) || len(rows.Records) != 4 {
		t.Errorf("if AvS was turned off during the maintenance, End must not forget it: %v", err)
	}
}
