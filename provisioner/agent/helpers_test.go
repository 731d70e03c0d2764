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

// fixture fakes one cluster with an agent, its Shoot in Gardener, and Director's tokens.
type fixture struct {
	agent Agent
	shoot *gardencorev1beta1.Shoot

	// The errors that the methods return, or nil for success.
	agentErr, configureErr, tokenErr, shootErr error

	tokens  int // number of issued tokens
	read    int
	at      Place
	written []Configuration
	removed []string
}

func (f *fixture) Agent(_ context.Context, at Place) (Agent, error) {
	f.read++
	f.at = at

	return f.agent, f.agentErr
}

func (f *fixture) ConfigureAgent(_ context.Context, _ Place, configuration Configuration) error {
	if f.configureErr != nil {
		return f.configureErr
	}

	f.written = append(f.written, configuration)
	f.agent.ConfiguredBy, f.agent.Replaces = configuration.WrittenBy, configuration.Replaces
	f.agent.Version += "+"

	return nil
}

func (f *fixture) RemoveConnection(_ context.Context, _ Place, id string) error {
	f.removed = append(f.removed, id)
	f.agent.Connection = nil

	return nil
}

func (f *fixture) OneTimeToken(context.Context, string, string) (Token, error) {
	if f.tokenErr != nil {
		return Token{}, f.tokenErr
	}

	f.tokens++

	return Token{Token: secret.String("token-" + strconv.Itoa(f.tokens)), ConnectorURL: "https://connector.example.com"}, nil
}

func (f *fixture) Get(context.Context, string) (*gardencorev1beta1.Shoot, error) {
	return f.shoot, f.shootErr
}

func (f *fixture) options() Options {
	return Options{
		Clusters: f, Tokens: f, ConfigurationTimeout: 15 * time.Minute, ConnectionTimeout: 15 * time.Minute, Limit: time.Hour,
	}
}

// run runs the first step of the given stage once, as part of the operation with the given ID.
func (f *fixture) run(t *testing.T, stage, operationID string) (op operation.Operation, wait time.Duration, err error) {
	t.Helper()

	return f.runOf(t, f.options(), stage, operationID, ordered)
}

func (f *fixture) runOf(t *testing.T, options Options, stage, operationID, order string) (op operation.Operation, wait time.Duration, err error) {
	t.Helper()

	op = process.NewOperation(process.Record{ID: operationID, InstanceID: runtimeID}, operation.Data{
		Runtime: runtimes.Runtime{ID: runtimeID, Tenant: "tenant", ShootName: "c-first", Configuration: json.RawMessage(order)},
	}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

	for _, each := range options.stages(process.Condition[operation.Data]{}) {
		if each.Name == stage {
			return each.Steps[0].Step.Run(t.Context(), op, logging.Discard())
		}
	}

	t.Fatalf("the process has no stage %s", stage)

	return op, wait, err
}

func unavailable(component string) error {
	return failure.New(failure.Transient, "the server does not respond").WithReason("unavailable", component)
}
