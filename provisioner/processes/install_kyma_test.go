package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	workPoll    = 5 * time.Second
	orderedKyma = `{"clusterConfig": {}, "kymaConfig": {"version": "2.0.0", "components": [{"component": "a"}, {"component": "b"}, {"component": "c"}]}}`
)

// kymaFixture is a cluster in which each call to Install installs one more component.
type kymaFixture struct {
	Clusters
	faults

	installed []string
	connected int // number of open connections
}

func (c *kymaFixture) Plan(_ context.Context, order spec.Kyma) (installation.Plan, error) {
	plan := installation.Plan{Version: order.Version}
	for _, component := range order.Components {
		plan.Components = append(plan.Components, installation.Component{Name: component.Component})
	}

	return plan, c.call("plan", succeed)
}

func (c *kymaFixture) Connect(_ context.Context, shootName string) (*rest.Config, func(), error) {
	if err := c.call("connect", succeed); err != nil {
		return nil, nil, err
	}

	c.connected++

	return &rest.Config{Host: shootName}, func() { c.connected-- }, nil
}

func (c *kymaFixture) Install(_ context.Context, target installation.Target, plan installation.Plan) (installation.Progress, error) {
	err := c.call("install", func() error {
		if len(c.installed) < len(plan.Components) {
			name := plan.Components[len(c.installed)].Name
			c.installed = append(c.installed, strings.Join([]string{target.Cluster.Host, target.RuntimeID, name, plan.Version}, " "))
		}

		return nil
	})

	return installation.Progress{
		Done: len(c.installed) == len(plan.Components), Message: fmt.Sprintf("%d of %d components", len(c.installed), len(plan.Components)),
	}, err
}

// Uninstall implements installation.Installer. The tests do not call it.
func (c *kymaFixture) Uninstall(context.Context, installation.Target) (installation.Progress, error) {
	return installation.Progress{}, c.call("uninstall", succeed)
}

func (c *kymaFixture) stages(limit time.Duration) []process.Stage[operation.Data] {
	return Options{Releases: c, Installer: c, Clusters: c, WorkPoll: workPoll}.installation("StartingInstallation", time.Minute, limit)
}

func newInstallation(configuration string) operation.Operation {
	return process.NewOperation(process.Record{ID: "op-1", InstanceID: "rt-1"}, operation.Data{
		Runtime: runtimes.Runtime{ID: "rt-1", ShootName: "c-first", Configuration: json.RawMessage(configuration)},
	}, now)
}

// runToEnd runs the stages as the engine does, and returns the number of waits and retries.
func (c *kymaFixture) runToEnd(t *testing.T) (waits int) {
	t.Helper()

	const maxTries = 10

	for _, stage := range c.stages(time.Hour) {
		for try := 1; ; try++ {
			if try > maxTries {
				t.Fatalf("stage %s does not end: %v", stage.Name, c.calls)
			}

			_, wait, err := stage.Steps[0].Step.Run(t.Context(), newInstallation(orderedKyma), logging.Discard())
			if err != nil && !failure.Is(err, failure.Transient) {
				t.Fatalf("stage %s: %v", stage.Name, err)
			}

			if err == nil && wait == 0 {
				break
			}

			waits++
		}
	}

	return waits
}

func TestInstallationStages(t *testing.T) {
	stages := (&kymaFixture{}).stages(time.Hour)

	whole := process.Process[operation.Data]{Kind: "kind", Limit: time.Hour, Stages: stages}
	if err := whole.Validate(); err != nil {
		t.Error(err)
	}

	if diff := cmp.Diff([]string{"StartingInstallation", "WaitingForInstallation"}, whole.StageNames()); diff != "" {
		t.Errorf("clients read the names of stages, -want +got:\n%s", diff)
	}

	if stages[0].Retry.Window != time.Minute || stages[1].Retry.Window != time.Hour {
		t.Errorf("a cluster that does not answer is retried for %s, then %s", stages[0].Retry.Window, stages[1].Retry.Window)
	}
}

// TestInstallation injects a fault into each call of the installation, one at a time: either the call or its response is
// lost. After every fault all components must be installed once.
func TestInstallation(t *testing.T) {
	want := []string{"c-first rt-1 a 2.0.0", "c-first rt-1 b 2.0.0", "c-first rt-1 c 2.0.0"}
	whole := &kymaFixture{}

	if waits := whole.runToEnd(t); waits != 1 {
		t.Errorf("installing three components, the first one at once, takes %d waits", waits)
	}

	for failing := range len(whole.calls) + 1 {
		for _, unsent := range []bool{true, false} {
			c := &kymaFixture{faults: faults{failing: failing, unsent: unsent}}
			c.runToEnd(t)

			if diff := cmp.Diff(want, c.installed); diff != "" || c.connected != 0 {
				t.Errorf("call %d fails, unsent %t: %v: %d open connections, -want +got:\n%s", failing, unsent, c.calls, c.connected, diff)
			}
		}
	}
}

func TestInstallationWaitsAndFailures(t *testing.T) {
	refusal := failure.New(failure.Permanent, "a Deployment cannot be changed")

	cases := map[string]struct {
		reason        string
		errs          map[string]error
		configuration string
		limit         time.Duration
		wantWait      time.Duration
		wantKind      failure.Kind
		wantText      string
		wantCalls     []string
	}{
		"in progress": {reason: "the installation takes time", limit: time.Hour, wantWait: workPoll, wantCalls: []string{"plan", "connect", "install"}},
		"too long": {
			reason: "the wait is bounded, and the error names the progress", wantKind: failure.Permanent,
			wantText: "not done within 0s: 1 of 3 components", wantCalls: []string{"plan", "connect", "install"},
		},
		"no release": {
			reason: "without the release nothing is installed", limit: time.Hour, errs: map[string]error{"plan": failure.New(failure.Invalid, "no such release")},
			wantKind: failure.Invalid, wantText: "no such release", wantCalls: []string{"plan"},
		},
		"no cluster": {
			reason: "errors are left to the retry policy", limit: time.Hour, errs: map[string]error{"connect": errLost},
			wantKind: failure.Transient, wantText: "lost", wantCalls: []string{"plan", "connect"},
		},
		"refused": {
			reason: "a permanent error is returned immediately", limit: time.Hour, errs: map[string]error{"install": refusal},
			wantKind: failure.Permanent, wantText: "cannot be changed", wantCalls: []string{"plan", "connect", "install"},
		},
		"no Kyma": {
			reason: "an operation of this kind without Kyma is an internal error", limit: time.Hour, configuration: `{}`, wantKind: failure.Internal,
			wantText: "without Kyma",
		},
		"garbled": {reason: "a stored order that cannot be decoded is an internal error", limit: time.Hour, configuration: `[]`, wantKind: failure.Internal, wantText: "cannot be read"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &kymaFixture{faults: faults{errs: tc.errs}}
			if tc.configuration == "" {
				tc.configuration = orderedKyma
			}

			_, wait, err := c.stages(tc.limit)[1].Steps[0].Step.Run(t.Context(), newInstallation(tc.configuration), logging.Discard())
			if wait != tc.wantWait || (err == nil) != (tc.wantKind == "") {
				t.Fatalf("%s: got wait %s, %v", tc.reason, wait, err)
			}

			if err != nil && (!failure.Is(err, tc.wantKind) || !strings.Contains(failure.Of(err).ForOperators(), tc.wantText)) {
				t.Errorf("%s: got %s %q", tc.reason, failure.KindOf(err), failure.Of(err).ForOperators())
			}

			if diff := cmp.Diff(tc.wantCalls, c.calls); diff != "" || c.connected != 0 {
				t.Errorf("%s: %d open connections, calls -want +got:\n%s", tc.reason, c.connected, diff)
			}
		})
	}
}
