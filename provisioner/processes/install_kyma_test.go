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

// kymaFixture has one more component installed with each call. One of the calls can go wrong.
type kymaFixture struct {
	Clusters

	installed []string
	connected int // connections that are open

	calls  []string
	broken int // the number of the call that goes wrong, counted from 1: its answer is lost, or, if unsent, the call itself
	unsent bool
	errs   map[string]error // what calls of a name always end with
}

func (c *kymaFixture) call(name string, effect func()) error {
	c.calls = append(c.calls, name)

	if err := c.errs[name]; err != nil {
		return err
	}

	if len(c.calls) != c.broken {
		effect()

		return nil
	}

	if !c.unsent {
		effect() // its answer is lost
	}

	return errLost
}

// Plan implements installation.Releases.
func (c *kymaFixture) Plan(_ context.Context, order spec.Kyma) (installation.Plan, error) {
	plan := installation.Plan{Version: order.Version}
	for _, component := range order.Components {
		plan.Components = append(plan.Components, installation.Component{Name: component.Component})
	}

	return plan, c.call("plan", func() {})
}

// Connect implements Clusters.
func (c *kymaFixture) Connect(_ context.Context, shootName string) (*rest.Config, func(), error) {
	if err := c.call("connect", func() {}); err != nil {
		return nil, nil, err
	}

	c.connected++

	return &rest.Config{Host: shootName}, func() { c.connected-- }, nil
}

// Install implements installation.Installer.
func (c *kymaFixture) Install(_ context.Context, cluster *rest.Config, runtimeID string, plan installation.Plan) (installation.Progress, error) {
	err := c.call("install", func() {
		if len(c.installed) < len(plan.Components) {
			name := plan.Components[len(c.installed)].Name
			c.installed = append(c.installed, strings.Join([]string{cluster.Host, runtimeID, name, plan.Version}, " "))
		}
	})

	return installation.Progress{
		Done: len(c.installed) == len(plan.Components), Message: fmt.Sprintf("%d of %d components", len(c.installed), len(plan.Components)),
	}, err
}

// Uninstall implements installation.Installer. No stage here does that.
func (c *kymaFixture) Uninstall(context.Context, *rest.Config, string) (installation.Progress, error) {
	return installation.Progress{}, c.call("uninstall", func() {})
}

func (c *kymaFixture) stages(limit time.Duration) []process.Stage[operation.Data] {
	return Options{Releases: c, Installer: c, Clusters: c, WorkPoll: workPoll}.installation("StartingInstallation", time.Minute, limit)
}

func newInstallation(configuration string) operation.Operation {
	return process.NewOperation(process.Record{ID: "op-1", InstanceID: "rt-1"}, operation.Data{
		Runtime: runtimes.Runtime{ID: "rt-1", ShootName: "c-first", Configuration: json.RawMessage(configuration)},
	}, now)
}

// carry carries the stages to their end as the engine does, and returns how often a step asked to come back.
func (c *kymaFixture) carry(t *testing.T) (waits int) {
	t.Helper()

	const enough = 10

	for _, stage := range c.stages(time.Hour) {
		for try := 1; ; try++ {
			if try > enough {
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
		t.Errorf("clients know the stages by name, -want +got:\n%s", diff)
	}

	if stages[0].Retry.Window != time.Minute || stages[1].Retry.Window != time.Hour {
		t.Errorf("a cluster that does not answer is waited for %s, then %s", stages[0].Retry.Window, stages[1].Retry.Window)
	}
}

// TestInstallation has each call go wrong in turn: before it arrives, or with its answer lost.
func TestInstallation(t *testing.T) {
	want := []string{"c-first rt-1 a 2.0.0", "c-first rt-1 b 2.0.0", "c-first rt-1 c 2.0.0"}
	whole := &kymaFixture{}

	if waits := whole.carry(t); waits != 1 {
		t.Errorf("three components, the first of them at the start, take %d waits", waits)
	}

	for broken := range len(whole.calls) + 1 {
		for _, unsent := range []bool{true, false} {
			c := &kymaFixture{broken: broken, unsent: unsent}
			c.carry(t)

			if diff := cmp.Diff(want, c.installed); diff != "" || c.connected != 0 {
				t.Errorf("call %d goes wrong, unsent %t: %v: %d connections are left, -want +got:\n%s", broken, unsent, c.calls, c.connected, diff)
			}
		}
	}
}

func TestInstallationThatDoesNotGoOn(t *testing.T) {
	broken := failure.New(failure.Permanent, "a Deployment cannot be changed")

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
		"under way": {reason: "it takes its time", limit: time.Hour, wantWait: workPoll, wantCalls: []string{"plan", "connect", "install"}},
		"too long": {
			reason: "nobody waits for ever, and the last word tells where it stands", wantKind: failure.Permanent,
			wantText: "1 of 3 components: not done within 0s", wantCalls: []string{"plan", "connect", "install"},
		},
		"no release": {
			reason: "a release that has gone is told, and nothing is installed", limit: time.Hour, errs: map[string]error{"plan": failure.New(failure.Invalid, "there is no release")},
			wantKind: failure.Invalid, wantText: "there is no release", wantCalls: []string{"plan"},
		},
		"no cluster": {
			reason: "an error is the retry policy's business", limit: time.Hour, errs: map[string]error{"connect": errLost},
			wantKind: failure.Transient, wantText: "lost", wantCalls: []string{"plan", "connect"},
		},
		"refused": {
			reason: "what is wrong for good is told at once", limit: time.Hour, errs: map[string]error{"install": broken},
			wantKind: failure.Permanent, wantText: "cannot be changed", wantCalls: []string{"plan", "connect", "install"},
		},
		"no Kyma": {
			reason: "an operation of this kind has some, else it is a fault of ours", limit: time.Hour, configuration: `{}`, wantKind: failure.Internal,
			wantText: "without Kyma",
		},
		"garbled": {reason: "a fault of ours", limit: time.Hour, configuration: `[]`, wantKind: failure.Internal, wantText: "cannot be read"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &kymaFixture{errs: tc.errs}
			if tc.configuration == "" {
				tc.configuration = orderedKyma
			}

			_, wait, err := c.stages(tc.limit)[1].Steps[0].Step.Run(t.Context(), newInstallation(tc.configuration), logging.Discard())
			if wait != tc.wantWait || (err == nil) != (tc.wantKind == "") {
				t.Fatalf("%s: comes back after %s, %v", tc.reason, wait, err)
			}

			if err != nil && (!failure.Is(err, tc.wantKind) || !strings.Contains(failure.Of(err).Text, tc.wantText)) {
				t.Errorf("%s: got %s %q", tc.reason, failure.KindOf(err), failure.Of(err).Text)
			}

			if diff := cmp.Diff(tc.wantCalls, c.calls); diff != "" || c.connected != 0 {
				t.Errorf("%s: %d connections are left, calls -want +got:\n%s", tc.reason, c.connected, diff)
			}
		})
	}
}
