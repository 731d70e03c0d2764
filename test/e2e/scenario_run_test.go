//go:build garden

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// callTimeout limits one attempt of a call. The next attempt uses the next replica.
	callTimeout = 5 * time.Second
	// operationLimit limits how long an operation may take under any number of faults.
	operationLimit = 2 * harness.Patience
)

// acceptance is the result of a mutation. Mutations return the ID of an operation, an operation, or a runtime with its last
// operation.
type acceptance struct{ operationID, runtimeID string }

// UnmarshalJSON implements json.Unmarshaler.
func (a *acceptance) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &a.operationID) == nil {
		return nil
	}

	var answer struct {
		ID, RuntimeID       string
		LastOperationStatus struct{ ID string }
	}

	err := json.Unmarshal(text, &answer)
	a.operationID, a.runtimeID = answer.ID+answer.LastOperationStatus.ID, answer.RuntimeID

	return err
}

// runScenario runs the actions of a scenario and calls done after each action.
func (f *fleet) runScenario(ctx context.Context, s *scenario, done func()) error {
	for _, a := range s.actions {
		if err := f.runAction(ctx, s, a); err != nil {
			return fmt.Errorf("%s, want %+v: %w", a.kind, a.want, err)
		}

		done()
	}

	return nil
}

func (f *fleet) runAction(ctx context.Context, s *scenario, a action) error {
	query, variables := s.request(a)
	by := caller{tenant: s.tenant(), key: fmt.Sprintf("%s %d", s.name, len(s.accepted))}

	var accepted acceptance
	if err := f.sendGraphQL(ctx, by, query, variables, &accepted); err != nil {
		return err
	}

	if a.losesResponse {
		first := accepted
		if err := f.sendGraphQL(ctx, by, query, variables, &accepted); err != nil {
			return fmt.Errorf("repeating the request: %w", err)
		}

		if accepted != first {
			return fmt.Errorf("the first request returned %v, the repeated one %v", first, accepted)
		}
	}

	s.accepted = append(s.accepted, accepted.operationID)

	if a.polls > 0 {
		s.abandoned = append(s.abandoned, accepted.operationID)
	}

	if operation.Provisions(a.kind) {
		s.runtimeID = accepted.runtimeID
	}

	if a.kind == operation.KindProvision {
		f.runAgent(s)
	}

	if err := f.waitForOperation(ctx, s, accepted.operationID, a.polls); err != nil {
		return err
	}

	if a.kind == operation.KindProvision && a.polls == 0 {
		return createExternalService(ctx, s)
	}

	if s.stopAgent != nil && operation.Deprovisions(a.kind) {
		s.stopAgent()
	}

	return nil
}

// waitForOperation polls until the operation has succeeded or the number of polls is reached. 0 means no limit.
func (f *fleet) waitForOperation(ctx context.Context, s *scenario, operationID string, polls int) error {
	const query = `query ($id: String!) { result: runtimeOperationStatus(id: $id) { state message lastError { errMessage reason component } } }`

	deadline := time.Now().Add(operationLimit)

	for poll := 1; ; poll++ {
		var status struct {
			State, Message string
			LastError      struct{ ErrMessage, Reason, Component string }
		}

		if err := f.sendGraphQL(ctx, caller{tenant: s.tenant()}, query, map[string]any{"id": operationID}, &status); err != nil {
			return err
		}

		switch {
		case status.State == "Succeeded" || poll == polls:
			return nil
		case status.State == "Failed":
			return fmt.Errorf("operation %s failed: %+v", operationID, status)
		case time.Now().After(deadline):
			return fmt.Errorf("operation %s has not ended after %s: %+v", operationID, operationLimit, status)
		}

		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// sendGraphQL sends a request to the replicas of the Provisioner in turn until one of them responds.
func (f *fleet) sendGraphQL(ctx context.Context, by caller, query string, variables map[string]any, result any) error {
	return retry(ctx, func() (again bool, err error) {
		address := f.provisioners.address()
		if address == "" {
			return true, errors.New("no Provisioner is ready")
		}

		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()

		by.url = "http://" + address + "/graphql"

		refused, err := by.send(limited, query, variables, result)
		if refused != nil {
			return refused.Extensions.Code == 503, fmt.Errorf("rejected with %d: %s", refused.Extensions.Code, refused.Message)
		}

		return err != nil, err
	})
}

func (s *scenario) tenant() string { return "tenant-" + s.name }

// request returns the GraphQL request of an action.
func (s *scenario) request(a action) (query string, variables map[string]any) {
	target := map[string]any{"id": s.runtimeID}

	switch a.kind {
	case operation.KindProvision, operation.KindProvisionNoInstall:
		return provisionRuntime, map[string]any{"config": s.order(a.want)}
	case operation.KindUpgradeShoot:
		target["config"] = map[string]any{
			"gardenerConfig": map[string]any{
				"kubernetesVersion": a.want.Kubernetes, "machineType": a.want.Machine, "autoScalerMax": a.want.Machines,
			},
			"administrators": []string{a.want.Administrator},
		}

		return upgradeShoot, target
	case operation.KindUpgradeRuntime:
		target["config"] = map[string]any{
			"kymaConfig": a.want.Kyma.order(), "clusterConfig": map[string]any{"kubernetesVersion": a.want.Kubernetes},
		}

		return upgradeRuntime, target
	case operation.KindUpgrade:
		target["config"] = map[string]any{"kymaConfig": a.want.Kyma.order()}

		return upgradeRuntime, target
	default:
		return `mutation ($id: String!) { result: ` + map[string]string{
			operation.KindRollBack:             "rollBackUpgradeOperation(id: $id) { lastOperationStatus { id } }",
			operation.KindHibernate:            "hibernateRuntime(id: $id) { id }",
			operation.KindWakeUp:               "wakeUpRuntime(id: $id) { id }",
			operation.KindReconnectRuntime:     "reconnectRuntimeAgent(id: $id)",
			operation.KindDeprovision:          "deprovisionRuntime(id: $id)",
			operation.KindDeprovisionNoInstall: "deprovisionRuntime(id: $id)",
		}[a.kind] + ` }`, target
	}
}

// order returns the order that provisions the runtime of the scenario in the given state.
func (s *scenario) order(state runtimeState) map[string]any {
	cluster := clusterOf(s.provider)
	cluster["name"], cluster["kubernetesVersion"] = s.name, state.Kubernetes
	cluster["machineType"], cluster["autoScalerMax"] = state.Machine, state.Machines

	order := map[string]any{
		"runtimeInput":  map[string]any{"name": s.name},
		"clusterConfig": map[string]any{"gardenerConfig": cluster, "administrators": []string{state.Administrator}},
	}
	if state.Kyma.Version != "" {
		order["kymaConfig"] = state.Kyma.order()
	}

	return order
}

func (k kymaState) order() map[string]any {
	var optional []map[string]any

	if k.Retention != "" {
		optional = append(optional, component("monitoring", "kyma-system", "retention", k.Retention, "adminPassword", "hush"))
	}

	if k.Tracing {
		optional = append(optional, component("tracing", "kyma-system"))
	}

	return kymaOf(k.Version, slices.Clip(optional)...)
}
