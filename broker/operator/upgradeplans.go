package operator

import (
	"context"
	"fmt"
	"net/http"

	"github.com/dustin/go-humanize/english"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
)

const (
	textUndo  = `The body is invalid. Send {"dryRun": true} as JSON, or an empty body.`
	textApply = `The body is invalid. Send {"strict": true} as JSON, or an empty body.`
	// maxChanged is the maximum number of changed instances in a response. The orchestration's list of targets contains all of them.
	maxChanged = 100
)

// PlanKyma stores a plan for an orchestration that upgrades Kyma.
func (a *API) PlanKyma(r *http.Request) (httpserver.Response, error) {
	return a.plan(r, environment.KindUpgradeKyma)
}

// PlanCluster stores a plan for an orchestration that upgrades clusters.
func (a *API) PlanCluster(r *http.Request) (httpserver.Response, error) {
	return a.plan(r, environment.KindUpgradeCluster)
}

func (a *API) plan(r *http.Request, kind string) (httpserver.Response, error) {
	parameters, err := a.readOrchestration(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	id, err := a.Orchestrator.CreatePlan(r.Context(), kind, parameters)
	a.logOrchestration(r.Context(), id, "store plan of kind "+kind, err)

	return httpserver.Response{Status: http.StatusCreated, Body: operatorapi.AcceptedOrchestration{OrchestrationID: id}}, err
}

// ApplyOrchestration applies a plan.
func (a *API) ApplyOrchestration(r *http.Request) (httpserver.Response, error) {
	id, err := operatorserver.Segment(r, "orchestration_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	var wanted operatorapi.PlanApplication
	if err := operatorserver.ReadStrictly(r.Body, &wanted, textApply); err != nil {
		return httpserver.Response{}, err
	}

	applied, err := a.ApplyPlan(r.Context(), id, wanted.Strict)

	return httpserver.Response{Status: http.StatusAccepted, Body: applied}, err
}

// ApplyPlan starts a planned orchestration. Instances that have changed since the plan was made are left out. If strict is true
// and there are such instances, nothing starts and the result is an error.
func (a *API) ApplyPlan(ctx context.Context, id string, strict bool) (operatorapi.AppliedPlan, error) {
	changed, err := a.Orchestrator.Apply(ctx, id, strict)
	a.logOrchestration(ctx, id, "apply the plan and leave out "+english.Plural(len(changed), "changed instance", ""), err)

	if err != nil {
		return operatorapi.AppliedPlan{}, err
	}

	applied := operatorapi.AppliedPlan{OrchestrationID: id, Changed: []operatorapi.ChangedTarget{}, ChangedCount: len(changed)}
	for _, each := range changed[:min(len(changed), maxChanged)] {
		applied.Changed = append(applied.Changed, operatorapi.ChangedTarget{InstanceID: each.InstanceID, Description: each.Why})
	}

	return applied, nil
}

// UndoOrchestration starts an orchestration that rolls back the upgrades of another one. For a dry run, it only stores a plan.
func (a *API) UndoOrchestration(r *http.Request) (httpserver.Response, error) {
	id, err := operatorserver.Segment(r, "orchestration_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	var wanted operatorapi.OrchestrationUndo
	if err := operatorserver.ReadStrictly(r.Body, &wanted, textUndo); err != nil {
		return httpserver.Response{}, err
	}

	undoID, err := a.Orchestrator.Undo(r.Context(), id, wanted.DryRun)
	a.logOrchestration(r.Context(), id, fmt.Sprintf("undo orchestration by %q, dry run: %t", undoID, wanted.DryRun), err)

	return httpserver.Response{Status: http.StatusAccepted, Body: operatorapi.AcceptedOrchestration{OrchestrationID: undoID}}, err
}
