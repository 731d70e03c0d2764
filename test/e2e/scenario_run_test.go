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
	// callTimeout limits one attempt; the next attempt goes to the next replica.
	callTimeout = 5 * time.Second
	// operationLimit limits the duration of an operation under any number of faults.
	operationLimit = 2 * harness.Patience
)

// acceptance is the response to a mutation: an operation, its ID, or its runtime.
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

// scenario runs the actions of a scenario and calls done after each.
func (f *fleet) scenario(ctx context.Context, w *scenario, done func()) error {
	for _, m := range w.actions {
		if err := f.action(ctx, w, m); err != nil {
			return fmt.Errorf("%s, want %+v: %w", m.kind, m.want, err)
		}

		done()
	}

	return nil
}

func (f *fleet) action(ctx context.Context, w *scenario, m action) error {
	query, variables := w.request(m)
	by := caller{tenant: w.tenant(), key: fmt.Sprintf("%s %d", w.name, len(w.accepted))}

	var accepted acceptance
	if err := f.insistOn(ctx, by, query, variables, &accepted); err != nil {
		return err
	}

	if m.lost {
		first := accepted
		if err := f.insistOn(ctx, by, query, variables, &accepted); err != nil {
			return fmt.Errorf("repeating the request: %w", err)
		}

		if accepted != first {
			return fmt.Errorf("the first request returned %v, the repeated one %v", first, accepted)
		}
	}

	w.accepted = append(w.accepted, accepted.operationID)

	if m.polls > 0 {
		w.abandoned = append(w.abandoned, accepted.operationID)
	}

	if operation.Provisions(m.kind) {
		w.runtimeID = accepted.runtimeID
	}

	if m.kind == operation.KindProvision {
		f.runAgent(w)
	}

	if err := f.await(ctx, w, accepted.operationID, m.polls); err != nil {
		return err
	}

	if m.kind == operation.KindProvision && m.polls == 0 {
		return createServices(ctx, w)
	}

	if w.stopAgent != nil && operation.Deprovisions(m.kind) {
		w.stopAgent()
	}

	return nil
}

// await polls until the operation has succeeded, but at most the given number of times; 0 means no limit.
func (f *fleet) await(ctx context.Context, w *scenario, operationID string, polls int) error {
	const query = `query ($id: String!) { result: runtimeOperationStatus(id: $id) { state message lastError { errMessage reason component } } }`

	deadline := time.Now().Add(operationLimit)

	for poll := 1; ; poll++ {
		var status struct {
			State, Message string
			LastError      struct{ ErrMessage, Reason, Component string }
		}

		if err := f.insistOn(ctx, caller{tenant: w.tenant()}, query, map[string]any{"id": operationID}, &status); err != nil {
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

		if err := rest(ctx); err != nil {
			return err
		}
	}
}

// insistOn sends the request to one Provisioner after another until one responds.
func (f *fleet) insistOn(ctx context.Context, by caller, query string, variables map[string]any, result any) error {
	return persist(ctx, func() (again bool, err error) {
		address := f.provisioners.address()
		if address == "" {
			return true, errors.New("no Provisioner is ready")
		}

		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()

		by.url = "http://" + address + "/graphql"

		refused, err := by.ask(limited, query, variables, result)
		if refused != nil {
			return refused.Extensions.Code == 503, fmt.Errorf("rejected with %d: %s", refused.Extensions.Code, refused.Message)
		}

		return err != nil, err
	})
}

func (w *scenario) tenant() string { return "tenant-" + w.name }

// request returns the GraphQL request of an action.
func (w *scenario) request(m action) (query string, variables map[string]any) {
	target := map[string]any{"id": w.runtimeID}

	switch m.kind {
	case operation.KindProvision, operation.KindProvisionNoInstall:
		return provisionRuntime, map[string]any{"config": w.order(m.want)}
	case operation.KindUpgradeShoot:
		target["config"] = map[string]any{
			"gardenerConfig": map[string]any{
				"kubernetesVersion": m.want.Kubernetes, "machineType": m.want.Machine, "autoScalerMax": m.want.Machines,
			},
			"administrators": []string{m.want.Administrator},
		}

		return upgradeShoot, target
	case operation.KindUpgrade:
		target["config"] = map[string]any{"kymaConfig": m.want.Kyma.order()}

		return upgradeRuntime, target
	default:
		return `mutation ($id: String!) { result: ` + map[string]string{
			operation.KindRollBack:             "rollBackUpgradeOperation(id: $id) { lastOperationStatus { id } }",
			operation.KindHibernate:            "hibernateRuntime(id: $id) { id }",
			operation.KindWakeUp:               "wakeUpRuntime(id: $id) { id }",
			operation.KindReconnectRuntime:     "reconnectRuntimeAgent(id: $id)",
			operation.KindDeprovision:          "deprovisionRuntime(id: $id)",
			operation.KindDeprovisionNoInstall: "deprovisionRuntime(id: $id)",
		}[m.kind] + ` }`, target
	}
}

// order returns the input that provisions the runtime.
func (w *scenario) order(state runtimeState) map[string]any {
	cluster := clusterOf(w.provider)
	cluster["name"], cluster["kubernetesVersion"] = w.name, state.Kubernetes
	cluster["machineType"], cluster["autoScalerMax"] = state.Machine, state.Machines

	order := map[string]any{
		"runtimeInput":  map[string]any{"name": w.name},
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
