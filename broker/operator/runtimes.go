package operator

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// stateRules returns the rules that derive the state of a runtime from its newest operation. Unlike
// environment.PhaseOf, they include updates and upgrades.
func stateRules() operatorserver.StateRules {
	working := []process.State{process.Pending, process.InProgress, process.Canceling}
	succeeded := []process.State{process.Succeeded}

	return operatorserver.StateRules{
		{State: operatorapi.RuntimeStateFailed, States: []process.State{process.Failed, process.Canceled}},
		{State: operatorapi.RuntimeStateProvisioning, Kinds: []string{environment.KindProvision}, States: working},
		{
			State:  operatorapi.RuntimeStateSucceeded,
			Kinds:  append(environment.UpgradeKinds(), environment.KindProvision, environment.KindUpdate, environment.KindResume),
			States: succeeded,
		},
		{State: operatorapi.RuntimeStateUpdating, Kinds: []string{environment.KindUpdate}, States: working},
		{State: operatorapi.RuntimeStateUpgrading, Kinds: environment.UpgradeKinds(), States: working},
		{State: operatorapi.RuntimeStateSuspending, Kinds: []string{environment.KindSuspend}, States: working},
		{State: operatorapi.RuntimeStateSuspended, Kinds: []string{environment.KindSuspend}, States: succeeded},
		{State: operatorapi.RuntimeStateResuming, Kinds: []string{environment.KindResume}, States: working},
		{State: operatorapi.RuntimeStateDeprovisioning, Kinds: []string{environment.KindDeprovision}, States: append(working, process.Succeeded)},
	}
}

// StateOf returns the state of a runtime from its newest operation.
func StateOf(newest process.Record) string { return string(stateRules().Of(newest)) }

// RuntimeStates returns the names of all states that StateOf can return.
func RuntimeStates() []string {
	rules := stateRules()

	names := make([]string, 0, len(rules))
	for _, rule := range rules {
		names = append(names, string(rule.State))
	}

	return names
}

// inState restricts the filter to runtimes in the given state. If the state is unknown, the error lists the valid states.
func inState(filter instances.Filter, state operatorapi.RuntimeState) (instances.Filter, error) {
	rule, err := stateRules().Find(state)
	if err != nil {
		return filter, err
	}

	filter.Kinds, filter.States = rule.Kinds, rule.States
	filter.Suspended = state == operatorapi.RuntimeStateSuspended // redundant, but this condition can use an index

	if state == operatorapi.RuntimeStateDeprovisioning {
		// Drop the final states. A successful deletion has removed its instance, so a query with these states would read every
		// past deletion without a result.
		filter.States = slices.DeleteFunc(slices.Clone(rule.States), process.State.Terminal)
	}

	return filter, nil
}

// ListRuntimes handles GET /runtimes.
func (a *API) ListRuntimes(r *http.Request, query operatorserver.Query) (httpserver.Response, error) {
	list, err := a.RuntimeList(r.Context(), query)

	return httpserver.OK(list), err
}

// RuntimeList returns a page of runtimes, each with its newest operation. The newest runtime comes first unless the query sets
// another order. RuntimeList decrypts the requests of instances only if the query asks for versions.
func (a *API) RuntimeList(ctx context.Context, query operatorserver.Query) (operatorapi.RuntimeList, error) {
	filter, err := runtimeFilter(query)
	if err != nil {
		return operatorapi.RuntimeList{}, err
	}

	versions, err := query.Bool("versions")
	if err != nil {
		return operatorapi.RuntimeList{}, err
	}

	left, err := query.Bool("leftovers")
	if err != nil {
		return operatorapi.RuntimeList{}, err
	}

	if left {
		return a.listLeftovers(ctx, query, filter)
	}

	if filter, err = addState(query, filter); err != nil {
		return operatorapi.RuntimeList{}, err
	}

	wanted, err := versionsOf(query)
	if err != nil {
		return operatorapi.RuntimeList{}, err
	}

	var list operatorapi.RuntimeList

	if wanted != (versionFilter{}) {
		list, err = a.listByVersion(ctx, query.Page, filter, wanted)
	} else {
		list.Data, list.Page, err = operatorserver.ReadList(ctx, query.Page, filter, a.Instances.List, a.Instances.Count, a.runtime,
			func(shown operatorapi.Runtime) (time.Time, string) { return shown.Status.CreatedAt, shown.InstanceID })

		if err == nil && list.Cursor != "" {
			list.Cursor = filter.After(listedAs(list.Data[len(list.Data)-1])).Cursor().String()
		}

		if err == nil && versions {
			err = a.addVersions(ctx, list.Data)
		}
	}

	if err == nil {
		err = a.addLabels(ctx, list.Data)
	}

	if err == nil && len(list.Data) == 0 && filter.Plan != "" && !slices.Contains(a.Catalog.Names(), filter.Plan) {
		return operatorapi.RuntimeList{}, operatorserver.Unknown("plan", filter.Plan, a.Catalog.Offered())
	}

	return list, err
}

// listedAs converts a runtime back to an instance, for the cursor of the next page. It copies only the fields by which lists are
// sorted.
func listedAs(shown operatorapi.Runtime) environment.Instance {
	return environment.Instance{
		ID: shown.InstanceID, Name: shown.Name, PlanName: shown.ServicePlanName, Region: shown.Region, GlobalAccountID: shown.GlobalAccountID,
		CreatedAt: shown.Status.CreatedAt,
	}
}

// addLabels reads the runtimes' labels from the database and sets their Labels fields.
func (a *API) addLabels(ctx context.Context, shown []operatorapi.Runtime) error {
	ids := make([]string, 0, len(shown))
	for _, runtime := range shown {
		ids = append(ids, runtime.InstanceID)
	}

	found, err := a.Instances.Labels(ctx, a.DB.Reader(), ids...)

	for i := range shown {
		shown[i].Labels = found[shown[i].InstanceID]
	}

	return err
}

func setVersions(shown *operatorapi.Runtime, cluster environment.Cluster) {
	shown.KubernetesVersion = cluster.KubernetesVersion
	if cluster.Kyma != nil {
		shown.KymaVersion = cluster.Kyma.Version
	}
}

// GetRuntime handles GET /runtimes/{instance_id}.
func (a *API) GetRuntime(r *http.Request) (httpserver.Response, error) {
	instance, err := a.instance(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	shown, err := a.details(r.Context(), instance)

	return httpserver.OK(shown), err
}

// RuntimeDetails returns a runtime with its parameters and the details of its newest operation.
func (a *API) RuntimeDetails(ctx context.Context, instanceID string) (operatorapi.Runtime, error) {
	instance, err := a.existing(ctx, instanceID)
	if err != nil {
		return operatorapi.Runtime{}, err
	}

	return a.details(ctx, instance)
}

func (a *API) details(ctx context.Context, instance environment.Instance) (operatorapi.Runtime, error) {
	listed, err := a.Instances.List(ctx, instances.Filter{InstanceID: instance.ID, Limit: 1})

	switch {
	case err != nil:
		return operatorapi.Runtime{}, err
	case len(listed) == 0: // deleted since the instance was read
		return operatorapi.Runtime{}, operatorserver.NotFound(textNoInstance)
	}

	shown := a.runtime(listed[0])
	shown.ShootName = instance.ClusterName() // the list lacks the request, which contains the name of a tenant's own cluster
	setVersions(&shown, instance.Request.Cluster)
	shown.Resolved = catalog.ResolvedOf(instance, a.RangesLeftOpen != nil && a.RangesLeftOpen())

	if sent := catalog.WithoutSecrets(instance.Request.Parameters); len(sent) > 0 {
		shown.Parameters = sent
	}

	found, err := a.Instances.Labels(ctx, a.DB.Reader(), instance.ID)
	if err != nil {
		return operatorapi.Runtime{}, err
	}

	shown.Labels = found[instance.ID]

	events, err := a.Events.OfInstance(ctx, instance.ID)
	if err != nil {
		return operatorapi.Runtime{}, err
	}

	for _, event := range events {
		shown.Events = append(shown.Events, operatorapi.Event{
			System: event.System, Result: event.Result, Message: event.Message, Count: event.Count, FirstAt: event.FirstAt, LastAt: event.LastAt,
		})
	}

	if shown.Status.LastOperation, err = a.CurrentOperation(ctx, shown.Status.LastOperation.ID); err != nil {
		return operatorapi.Runtime{}, err
	}

	shown.Status.LastOperation.InstanceName = instance.Name
	shown.Status.LastOperation.Timeline = nil

	return shown, nil
}

// runtime converts an instance and its newest operation to an operatorapi.Runtime. ModifiedAt is the time at which the instance
// or the operation last changed.
func (a *API) runtime(listed instances.Listed) operatorapi.Runtime {
	instance, newest := listed.Instance, listed.Operation

	modified := instance.UpdatedAt
	if newest.UpdatedAt.After(modified) {
		modified = newest.UpdatedAt
	}

	last := a.Operation(newest)
	if !newest.State.Terminal() {
		last.Percent = a.Estimator.Forecast(newest, instance.PlanID, a.Clock.Now()).Percent
	}

	return operatorapi.Runtime{
		InstanceID:       instance.ID,
		RuntimeID:        instance.RuntimeID,
		GlobalAccountID:  instance.GlobalAccountID,
		SubAccountID:     instance.SubAccountID,
		Provider:         instance.Provider,
		Region:           instance.Region,
		SubAccountRegion: instance.PlatformRegion,
		Platform:         instance.Platform,
		SharedWith:       instance.SharedWith,
		Name:             instance.Name,
		ShootName:        instance.ClusterName(),
		ServiceClassID:   instance.ServiceID,
		ServicePlanID:    instance.PlanID,
		ServicePlanName:  instance.PlanName,
		DashboardURL:     instance.DashboardURL,

		SubscriptionAccountID: instance.SubscriptionAccountID,
		ProvisionerTenant:     labelUnlessSame(instance.RuntimeTenant()),
		ProvisionerSubAccount: labelUnlessSame(instance.SubAccountID),
		MaintenanceVersion:    instance.MaintenanceVersion,
		DeletionProtection:    instance.DeletionProtection,
		Status: operatorapi.RuntimeStatus{
			State:         stateRules().Of(newest),
			Suspended:     instance.Suspended,
			ExpiresAt:     instance.ExpiresAt,
			ExpiredAt:     instance.ExpiredAt,
			CreatedAt:     instance.CreatedAt,
			ModifiedAt:    modified,
			LastOperation: last,
		},
	}
}

// labelUnlessSame returns the label that the Provisioner uses for an account ID. It returns an empty string if the
// label equals the ID.
func labelUnlessSame(id string) string {
	if tenancy.Original(id) == "" {
		return ""
	}

	return tenancy.Label(id)
}

// instance returns the instance that the request path names, and its decrypted request. If it fails, the result contains only the
// ID, for the log.
func (a *API) instance(r *http.Request) (environment.Instance, error) {
	id, err := operatorserver.Segment(r, "instance_id")
	if err != nil {
		return environment.Instance{}, err
	}

	httpserver.Note(r.Context(), logging.InstanceID, id)

	return a.existing(r.Context(), id)
}

// existing returns the instance with the given ID and its decrypted request. If it fails, the result contains only the ID, for
// the log.
func (o *Options) existing(ctx context.Context, id string) (environment.Instance, error) {
	instance, err := o.Instances.Get(ctx, o.DB.Reader(), id)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return environment.Instance{ID: id}, operatorserver.NotFound(textNoInstance)
	case err != nil:
		return environment.Instance{ID: id}, err
	default:
		return instance, nil
	}
}

// ExpireInstance expires an instance before the end of its lifetime. The response is 202 with the suspension, or 200 if
// the runtime is already gone. The timeline of the suspension, the audit log and the broker's log contain the name of the user.
func (a *API) ExpireInstance(r *http.Request) (httpserver.Response, error) {
	id, err := operatorserver.Segment(r, "instance_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	by := cmp.Or(auth.FromContext(r.Context()).Name, operatorserver.Anonymous)
	line := a.Log.WithFields(logrus.Fields{logging.User: by, logging.InstanceID: id})

	httpserver.Note(r.Context(), logging.InstanceID, id)

	operation, err := a.Expirer.Expire(r.Context(), id, "expired by "+by)
	if err != nil {
		line.WithError(err).Warn("audit: instance not expired")

		return httpserver.Response{}, err
	}

	line.WithField(logging.OperationID, operation).Info("audit: instance expired")

	response := httpserver.OK(operatorapi.Expiration{Operation: operation})
	if operation != "" {
		response.Status = http.StatusAccepted
		httpserver.Note(r.Context(), logging.OperationID, operation)
	}

	return response, nil
}

// StateCounts returns the number of instances in each state. Indexes make every state except succeeded cheap to count. The number
// of instances in state succeeded is therefore the total minus all other counts.
func (a *API) StateCounts(ctx context.Context) (map[operatorapi.RuntimeState]int, error) {
	total, err := a.Instances.Count(ctx, instances.Filter{})
	if err != nil {
		return nil, err
	}

	counts := map[operatorapi.RuntimeState]int{}

	for _, rule := range stateRules() {
		if rule.State == operatorapi.RuntimeStateSucceeded {
			continue
		}

		filter, err := inState(instances.Filter{}, rule.State)
		if err != nil {
			return nil, err
		}

		if counts[rule.State], err = a.Instances.Count(ctx, filter); err != nil {
			return nil, err
		}

		total -= counts[rule.State]
	}

	counts[operatorapi.RuntimeStateSucceeded] = max(total, 0) // instances may change between two counts

	return counts, nil
}
