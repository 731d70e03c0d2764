package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/labels"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// Parameters that select instances by the kind and the state of their newest operation, and by the versions in their encrypted
// requests.
const (
	kindFilter           = "kind"
	operationStateFilter = "operation_state"
	kubernetesFilter     = "kubernetes_version"
	kymaFilter           = "kyma_version"
)

// columnFilters returns the parameters that addColumns and versionsOf read. Lists of leftovers do not accept these parameters.
func columnFilters() []string {
	return []string{
		"provider", "shoot", "runtime", "subscription_account", "shared_with", "maintenance_version", kindFilter, "expired", "expires_before", "since", "until",
		"operation", operationStateFilter, "problem", "service", "dashboard_url", "suspended", kubernetesFilter, kymaFilter, "updated_since", "updated_before",
	}
}

// runtimeFilter returns the filter of a query. It leaves out the conditions of addState and versionsOf, which do not apply to
// lists of leftovers.
func runtimeFilter(query operatorserver.Query) (instances.Filter, error) {
	filter := instances.Filter{
		InstanceID:      query.Get("instance_id"),
		Name:            query.Get("name"),
		GlobalAccountID: query.Get("account"),
		SubAccountID:    query.Get("subaccount"),
		Region:          query.Get("region"),
		Platform:        query.Get("platform"),
		Plan:            query.Get("plan"),
		Before:          query.Page.Before,
		BeforeID:        query.Page.BeforeID,
		BeforeKey:       query.Page.BeforeKey,
		Offset:          query.Page.Offset,
		Limit:           query.Page.Size + 1,
	}

	var err error
	if filter.Labels, err = labels.Parse(query.Get("labels")); err != nil {
		return filter, err //nolint:wrapcheck // of package failure
	}

	if filter.Protected, err = query.Bool("protected"); err != nil {
		return filter, err //nolint:wrapcheck // a refusal
	}

	if filter.Search = strings.TrimSpace(query.Get("search")); len(filter.Search) > bounds.ID {
		return filter, operatorserver.Invalid(fmt.Sprintf("search must have at most %d bytes.", bounds.ID))
	}

	if filter.Anywhere, err = query.Bool("anywhere"); err != nil {
		return filter, err //nolint:wrapcheck // a refusal
	}

	if filter.Sort, err = sortOf(query); err != nil {
		return filter, err
	}

	err = addColumns(query, &filter)

	return filter, err
}

// sortOf returns the sort order that the query requests. The default is newest first.
func sortOf(query operatorserver.Query) (instances.Sort, error) {
	wanted := instances.Sort(cmp.Or(query.Get("sort"), string(instances.Newest)))
	if sorts := instances.Sorts(); !slices.Contains(sorts, wanted) {
		return wanted, operatorserver.Unknown("sort order", wanted, sorts)
	}

	return wanted, nil
}

// addState restricts the filter to runtimes in the state that the query names, if any. If the filter already selects only
// suspended instances, it continues to do so.
func addState(query operatorserver.Query, filter instances.Filter) (instances.Filter, error) {
	state := query.Get("state")
	if state == "" {
		return filter, nil
	}

	if query.Get(kindFilter) != "" || query.Get(operationStateFilter) != "" {
		return filter, operatorserver.Invalid("kind and operation_state cannot be combined with state, which implies them.")
	}

	suspended := filter.Suspended

	filter, err := inState(filter, operatorapi.RuntimeState(state))
	filter.Suspended = filter.Suspended || suspended

	return filter, err
}

// addColumns adds the conditions for the columnFilters parameters to the filter, except for the two version parameters. The error
// describes the first invalid value.
func addColumns(query operatorserver.Query, filter *instances.Filter) error {
	filter.Provider, filter.RuntimeID = query.Get("provider"), query.Get("runtime")
	filter.SubscriptionAccountID, filter.MaintenanceVersion = query.Get("subscription_account"), query.Get("maintenance_version")
	filter.ServiceID, filter.DashboardURL = query.Get("service"), query.Get("dashboard_url")
	filter.OperationID = query.Get("operation")

	if filter.Problem = query.Get("problem"); len(filter.Problem) > bounds.ID {
		return operatorserver.Invalid(fmt.Sprintf("problem must have at most %d bytes.", bounds.ID))
	}

	if shoot := query.Get("shoot"); shoot != "" {
		filter.ShootNames = []string{shoot}
	}

	if platform := query.Get("shared_with"); platform != "" {
		if wrong := validation.IsDNS1123Label(platform); len(wrong) > 0 {
			return operatorserver.Invalid("shared_with must be the name of a platform.")
		}

		filter.SharedWith = platform
	}

	if kind := query.Get(kindFilter); kind != "" {
		kinds := environment.Kinds()
		if !slices.Contains(kinds, kind) {
			return operatorserver.Unknown("kind", kind, kinds)
		}

		filter.Kinds = []string{kind}
	}

	if state := query.Get(operationStateFilter); state != "" {
		states := operatorserver.OperationStates()
		if !slices.Contains(states, state) {
			return operatorserver.Unknown("operation_state", state, states)
		}

		filter.States = []process.State{process.State(state)}
	}

	for name, value := range map[string]*bool{"expired": &filter.Expired, "suspended": &filter.Suspended} {
		given, err := query.Bool(name)
		if err != nil {
			return err //nolint:wrapcheck // a refusal
		}

		*value = given
	}

	for name, value := range map[string]*time.Time{
		"expires_before": &filter.ExpiresBefore, "since": &filter.Since, "until": &filter.Until,
		"updated_since": &filter.UpdatedSince, "updated_before": &filter.UpdatedBefore,
	} {
		given, err := query.Time(name)
		if err != nil {
			return err //nolint:wrapcheck // a refusal
		}

		*value = given
	}

	return nil
}
