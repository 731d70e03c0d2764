package agent

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	runtimeID = "runtime-1"
	ordered   = `{"kymaConfig": {"version": "1.13.0", "components": [
		{"component": "core", "namespace": "kyma-system"}, {"component": "compass-runtime-agent", "namespace": "compass-system"}]}}`
)

// fixture is a cluster with its agent, Gardener and Director.
type fixture struct {
	agent Agent
	shoot *gardencorev1beta1.Shoot

	// unread, unconfigured and noToken are injected errors.
	unread, unconfigured, noToken, noShoot error

	tokens  int // issued tokens
	read    int
	at      Place
	written []Configuration
	removed []string
}

func (w *fixture) Agent(_ context.Context, at Place) (Agent, error) {
	w.read++
	w.at = at

	return w.agent, w.unread
}

func (w *fixture) ConfigureAgent(_ context.Context, _ Place, configuration Configuration) error {
	if w.unconfigured != nil {
		return w.unconfigured
	}

	w.written = append(w.written, configuration)
	w.agent.ConfiguredBy, w.agent.Replaces = configuration.WrittenBy, configuration.Replaces
	w.agent.Version += "+"

	return nil
}

func (w *fixture) RemoveConnection(_ context.Context, _ Place, id string) error {
	w.removed = append(w.removed, id)
	w.agent.Connection = nil

	return nil
}

func (w *fixture) OneTimeToken(context.Context, string, string) (Token, error) {
	if w.noToken != nil {
		return Token{}, w.noToken
	}

	w.tokens++

	return Token{Token: secret.String("token-" + strconv.Itoa(w.tokens)), ConnectorURL: "https://connector.example.com"}, nil
}

// Get implements Shoots.
func (w *fixture) Get(context.Context, string) (*gardencorev1beta1.Shoot, error) {
	return w.shoot, w.noShoot
}

func (w *fixture) options() Options {
	return Options{
		Clusters: w, Tokens: w, ConfigurationTimeout: 15 * time.Minute, ConnectionTimeout: 15 * time.Minute, Limit: time.Hour,
	}
}

// run runs a stage of the operation once.
func (w *fixture) run(t *testing.T, stage, operationID string) (op operation.Operation, wait time.Duration, err error) {
	t.Helper()

	return w.runOf(t, w.options(), stage, operationID, ordered)
}

func (w *fixture) runOf(t *testing.T, options Options, stage, operationID, order string) (op operation.Operation, wait time.Duration, err error) {
	t.Helper()

	op = process.NewOperation(process.Record{ID: operationID, InstanceID: runtimeID}, operation.Data{
		Runtime: runtimes.Runtime{ID: runtimeID, Tenant: "tenant", ShootName: "c-first", Configuration: json.RawMessage(order)},
	}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

	for _, each := range options.stages(nil) {
		if each.Name == stage {
			return each.Steps[0].Step.Run(t.Context(), op, logging.Discard())
		}
	}

	t.Fatalf("the process has no stage %s", stage)

	return op, wait, err
}

func away(component string) error {
	return failure.New(failure.Transient, "nobody answers").WithReason("away", component)
}
