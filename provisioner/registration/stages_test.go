package registration_test

import (
	"context"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// reported is a Director that records the latest change.
type reported struct {
	registration.Director

	change  director.Change
	subject string
	err     error
}

func (t *reported) Update(_ context.Context, tenant, id string, change director.Change) error {
	t.subject, t.change = tenant+" "+id, change

	return t.err
}

func (t *reported) Unregister(_ context.Context, tenant, id string) error {
	t.subject = tenant + " " + id

	return t.err
}

// shoots is a shoot.Reader. It returns a Shoot with the domain, or the error.
type shoots struct {
	domain string
	err    error
}

func (s shoots) Get(context.Context, string) (*gardencorev1beta1.Shoot, error) {
	return &gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{DNS: &gardencorev1beta1.DNS{Domain: &s.domain}}}, s.err
}

func TestStages(t *testing.T) {
	away := failure.New(failure.Transient, "Director is unavailable")

	cases := map[string]struct {
		reason string
		stage  func(d registration.Director) process.Stage[operation.Data]
		want   director.Change
		always bool
	}{
		"described": {
			reason: "labels name the cluster",
			stage: func(d registration.Director) process.Stage[operation.Data] {
				return registration.Described(d, shoots{domain: "c-first.example.com"})
			},
			want: director.Change{Condition: director.Provisioning, Labels: map[string]any{
				"gardenerClusterName": "c-first", "gardenerClusterDomain": "c-first.example.com",
			}},
		},
		"connected": {reason: "the agent is connected", stage: registration.Connected, want: director.Change{Condition: director.Connected}},
		"forgotten": {reason: "unregistering also runs for runtimes without a registration", stage: registration.Forgotten, always: true},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := &reported{}
			stage := c.stage(d)
			data := operation.Data{Runtime: runtimes.Runtime{ID: "runtime", Tenant: tenant, ShootName: "c-first"}}
			op := process.NewOperation(process.Record{ID: "operation"}, data, time.Now())
			task := stage.Steps[0]

			if got := task.When.Met(op); got != c.always {
				t.Errorf("%s: for an unregistered runtime: runs %t", c.reason, got)
			}

			op.Data.Registered = true
			if !task.When.Met(op) {
				t.Errorf("%s: the stage skips a registered runtime", c.reason)
			}

			for range 2 {
				if _, wait, err := task.Step.Run(t.Context(), op, logging.Discard()); err != nil || wait != 0 {
					t.Fatalf("got wait %s, %v", wait, err)
				}
			}

			if diff := cmp.Diff(c.want, d.change); diff != "" || d.subject != tenant+" runtime" {
				t.Errorf("%s: reported for %s, -want +got:\n%s", c.reason, d.subject, diff)
			}

			d.err = away
			if _, wait, err := task.Step.Run(t.Context(), op, logging.Discard()); !failure.Is(err, failure.Transient) || wait != 0 {
				t.Errorf("Director is unavailable: got wait %s, %v", wait, err)
			}
		})
	}
}

func TestRuntimeIsNotDescribedWithoutItsCluster(t *testing.T) {
	d := &reported{}
	step := registration.Described(d, shoots{err: failure.New(failure.Transient, "Director is unavailable")}).Steps[0].Step

	op := process.NewOperation(process.Record{}, operation.Data{}, time.Now())
	if _, _, err := step.Run(t.Context(), op, logging.Discard()); !failure.Is(err, failure.Transient) || d.subject != "" {
		t.Errorf("got %v, reported for %q", err, d.subject)
	}
}
