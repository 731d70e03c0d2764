package operator

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// maxIDs is the maximum number of IDs in a list filter.
const maxIDs = 100

const textNoRuntime = "The runtime does not exist."

// stateRules returns the rules that derive the state of a runtime from its newest operation.
func stateRules() operatorserver.StateRules {
	working := []process.State{process.Pending, process.InProgress, process.Canceling}
	succeeded := []process.State{process.Succeeded}
	creations := []string{operation.KindProvision, operation.KindProvisionNoInstall}
	changes := []string{
		operation.KindUpgrade, operation.KindUpgradeRuntime, operation.KindRollBack, operation.KindUpgradeShoot, operation.KindReconnectRuntime,
	}
	deletions := []string{operation.KindDeprovision, operation.KindDeprovisionNoInstall}

	return operatorserver.StateRules{
		{State: operatorapi.RuntimeStateFailed, States: []process.State{process.Failed, process.Canceled}},
		{State: operatorapi.RuntimeStateProvisioning, Kinds: creations, States: working},
		{State: operatorapi.RuntimeStateSucceeded, Kinds: slices.Concat(creations, changes, []string{operation.KindWakeUp}), States: succeeded},
		{State: operatorapi.RuntimeStateUpdating, Kinds: changes, States: working},
		{State: operatorapi.RuntimeStateSuspending, Kinds: []string{operation.KindHibernate}, States: working},
		{State: operatorapi.RuntimeStateSuspended, Kinds: []string{operation.KindHibernate}, States: succeeded},
		{State: operatorapi.RuntimeStateResuming, Kinds: []string{operation.KindWakeUp}, States: working},
		{State: operatorapi.RuntimeStateDeprovisioning, Kinds: deletions, States: working},
		{State: operatorapi.RuntimeStateDeleted, Kinds: deletions, States: succeeded},
	}
}

// ListRuntimes returns a page of runtimes, newest first, each with its newest operation. It lists deleted runtimes only if the
// query contains instance_id or selects the state deleted.
func (a *api) ListRuntimes(r *http.Request, query operatorserver.Query) (httpserver.Response, error) {
	filter := runtimes.Filter{
		ID:         query.Get("instance_id"),
		Tenant:     tenancy.Label(query.Get("account")),
		SubAccount: tenancy.Label(query.Get("subaccount")),
		ShootName:  query.Get("name"),
		Region:     query.Get("region"),
		Deleted:    query.Get("instance_id") != "",
		Before:     query.Page.Before,
		BeforeID:   query.Page.BeforeID,
		Offset:     query.Page.Offset,
		Limit:      query.Page.Size + 1,
	}

	if query.Has("ids") {
		if filter.Among = strings.Split(query.Get("ids"), ","); len(filter.Among) > maxIDs {
			return httpserver.Response{}, operatorserver.Invalid(fmt.Sprintf("ids: at most %d IDs are allowed.", maxIDs))
		}
	}

	if state := query.Get("state"); state != "" {
		rule, err := stateRules().Find(operatorapi.RuntimeState(state))
		if err != nil {
			return httpserver.Response{}, err
		}

		filter.Kinds, filter.States = rule.Kinds, rule.States
		filter.Deleted = filter.Deleted || rule.State == operatorapi.RuntimeStateDeleted
	}

	var (
		list operatorapi.RuntimeList
		err  error
	)

	list.Data, list.Page, err = operatorserver.ReadList(r.Context(), query.Page, filter, a.runtimes.List, a.runtimes.Count, a.runtime,
		func(shown operatorapi.Runtime) (time.Time, string) { return shown.Status.CreatedAt, shown.RuntimeID })

	return httpserver.OK(list), err
}

// GetRuntime returns a runtime, deleted or not, with its order and the details of its newest operation.
func (a *api) GetRuntime(r *http.Request) (httpserver.Response, error) {
	id, err := operatorserver.Segment(r, "instance_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	httpserver.Note(r.Context(), logging.RuntimeID, id)

	listed, err := a.runtimes.List(r.Context(), runtimes.Filter{ID: id, Deleted: true, Limit: 1})

	switch {
	case err != nil:
		return httpserver.Response{}, err
	case id == "" || len(listed) == 0:
		return httpserver.Response{}, operatorserver.NotFound(textNoRuntime)
	}

	shown := a.runtime(listed[0])

	if shown.Resolved, shown.ClientData, err = a.orderFor(r, id); err != nil {
		return httpserver.Response{}, err
	}

	if shown.Status.LastOperation, err = a.CurrentOperation(r.Context(), shown.Status.LastOperation.ID); err != nil {
		return httpserver.Response{}, err
	}

	shown.Status.LastOperation.InstanceName = shown.ShootName
	shown.Status.LastOperation.Timeline = nil

	return httpserver.OK(shown), nil
}

// order is the order for a runtime as the API shows it.
type order struct {
	Cluster        *spec.Cluster `json:"cluster,omitempty"`
	Administrators []string      `json:"administrators,omitempty"`
	Kyma           *spec.Kyma    `json:"kyma,omitempty"`
}

// orderFor returns a runtime's order without its secrets, and the order's ClientData.
func (a *api) orderFor(r *http.Request, id string) (any, string, error) {
	runtime, err := a.runtimes.Get(r.Context(), a.DB.Reader(), id)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, "", operatorserver.NotFound(textNoRuntime)
	}

	if err != nil {
		return nil, "", err
	}

	decoded, err := operation.OrderOf(runtime)
	if err != nil {
		return nil, "", err
	}

	shown := order{Kyma: decoded.KymaConfig.WithoutSecrets()}
	if decoded.ClusterConfig != nil {
		shown.Cluster, shown.Administrators = decoded.ClusterConfig.GardenerConfig, decoded.ClusterConfig.Administrators
	}

	return shown, ptr.Deref(decoded.ClientData, ""), nil
}

// runtime converts a runtime and its newest operation to the API type. ModifiedAt is the time at which the operation last changed
// or the runtime was deleted, whichever is later.
func (a *api) runtime(listed runtimes.Listed) operatorapi.Runtime {
	runtime, newest := listed.Runtime, listed.Operation

	modified := newest.UpdatedAt
	if runtime.DeletedAt.After(modified) {
		modified = runtime.DeletedAt
	}

	return operatorapi.Runtime{
		InstanceID:      runtime.ID,
		RuntimeID:       runtime.ID,
		GlobalAccountID: runtime.Tenant,
		SubAccountID:    runtime.SubAccount,
		Provider:        runtime.Provider,
		Region:          runtime.Region,
		Name:            runtime.ShootName,
		ShootName:       runtime.ShootName,
		Status: operatorapi.RuntimeStatus{
			State:         stateRules().Of(newest),
			CreatedAt:     runtime.CreatedAt,
			ModifiedAt:    modified,
			DeletedAt:     runtime.DeletedAt,
			LastOperation: a.Operation(newest),
		},
	}
}
