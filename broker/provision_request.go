package broker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
)

// provisionRequest is a well-formed request for an instance, with the results of all checks that do not need the database.
type provisionRequest struct {
	plan              *catalog.Plan
	acceptsIncomplete bool
	// account is the global account in the context, or empty.
	account string
	// instance is the requested instance, with defaults unless there are violations. It has no ShootName until it
	// is stored.
	instance environment.Instance
	// violations are the plan's rules that the request breaks. The response to a validate request lists them.
	violations catalog.Violations
	// unavailable is the error that prevents the creation of a new instance. Repeated requests ignore it, because
	// the rules may have become stricter since the first request.
	unavailable error
}

// readProvisionRequest reads the request and resolves the parameters with the plan. It returns an error for a
// malformed request. Violations of the plan's rules are only recorded, because they do not matter to a repeated
// request.
func (a *api) readProvisionRequest(r request) (provisionRequest, error) {
	region, err := a.region(r.Request)
	if err != nil {
		return provisionRequest{}, err
	}

	now, sent := storage.At(a.Clock.Now()).Time, r.body
	instance := environment.Instance{
		ID:             r.instanceID,
		Platform:       auth.PlatformOf(r.Context()).Name,
		ServiceID:      sent.required("service_id"),
		PlanID:         sent.required("plan_id"),
		PlatformRegion: region,
		DashboardURL:   dashboardOf(a.DashboardURL, r.instanceID),
		Request: environment.Request{
			OrganizationGUID: sent.label("organization_guid"),
			SpaceGUID:        sent.label("space_guid"),
			Context:          sent.context(),
			Parameters:       sent.object("parameters"),
		},
		CreatedAt: now,
		UpdatedAt: now,
	}

	audit.NoteAccount(r.Context(), tenantOf(sent.inner("context"), instance.Request.OrganizationGUID))

	version, credentials := sent.maintenanceVersion(), sent.contextServiceManager()
	if sent.err != nil {
		return provisionRequest{}, sent.err
	}

	plan, err := a.Catalog.Plan(instance.ServiceID, instance.PlanID)
	if err != nil {
		return provisionRequest{}, err
	}

	if version != "" && version != plan.MaintenanceVersion() {
		return provisionRequest{}, unprocessable(codeMaintenanceConflict, fmt.Sprintf(textMaintenance, plan.MaintenanceVersion()))
	}

	if err := a.setRequester(&instance, sent.inner("context"), audit.ActorOf(r.Context()).Originator); err != nil {
		return provisionRequest{}, err
	}

	if !auth.PlatformOf(r.Context()).AllowsTenant(instance.GlobalAccountID) {
		return provisionRequest{}, forbidden(textOtherTenant)
	}

	instance.PlanName, instance.MaintenanceVersion = plan.Name, plan.MaintenanceVersion()
	instance.ExpiresAt = a.Periods.End(plan.Name, now)
	instance.Exclusive = plan.Exclusive(instance.GlobalAccountID)

	request := provisionRequest{
		plan: plan, acceptsIncomplete: r.acceptsIncomplete(), account: sent.inner("context").label("globalaccount_id"),
	}
	request.instance, request.violations = plan.Resolve(instance)
	request.instance.Request.Cluster.ServiceManager = credentials
	request.unavailable = request.violations.Err()

	if !plan.Offered() {
		request.unavailable = invalid(textNotOffered)
	}

	return request, nil
}

// dashboardOf replaces the placeholder in a dashboard address with the escaped instance ID. In the path, a space becomes %20
// instead of a plus sign.
func dashboardOf(address, instanceID string) string {
	const placeholder = "{instance_id}"

	path, query, hasQuery := strings.Cut(address, "?")

	path = strings.ReplaceAll(path, placeholder, url.PathEscape(instanceID))
	if !hasQuery {
		return path
	}

	return path + "?" + strings.ReplaceAll(query, placeholder, url.QueryEscape(instanceID))
}

// tenantOf returns the global account in the context of a request. If the context contains none, the tenant is the Cloud Foundry
// organization or the cluster of the Kubernetes platform.
func tenantOf(context *body, organization string) string {
	return cmp.Or(context.label("globalaccount_id"), organization, context.label("clusterid"))
}

// setRequester sets the tenant, the user and the name of the instance. User IDs from the context are converted to
// lower case, as in tokens. It returns an error if the organization or the space is missing. Requests may omit them
// if the context names a global account or a cluster, unless Options.Strict is set.
func (a *api) setRequester(instance *environment.Instance, context *body, originator string) error {
	account, cluster := context.label("globalaccount_id"), context.label("clusterid")
	organization, space := instance.Request.OrganizationGUID, instance.Request.SpaceGUID

	instance.GlobalAccountID = tenantOf(context, organization)
	instance.SubAccountID = cmp.Or(context.label("subaccount_id"), space, context.label("namespace"))
	instance.Request.User = cmp.Or(strings.ToLower(context.label("user_id")), originator)
	instance.Name = start(context.text("instance_name"), longestLabel)

	switch {
	case context.err != nil:
		return context.err
	case !a.Strict && (account != "" || cluster != ""):
		return nil
	case organization == "":
		return invalid("organization_guid is missing.")
	case space == "":
		return invalid("space_guid is missing.")
	default:
		return nil
	}
}

// start returns at most the given number of characters from the beginning of text.
func start(text string, characters int) string {
	for i := range text {
		if characters == 0 {
			return text[:i]
		}

		characters--
	}

	return text
}

// matches reports whether the existing instance was created by an equal request. Later updates of the instance do not
// matter. The context may differ, because it contains names of organizations and spaces, which can change. Only its
// global account, if it names one, must be the account of the instance or the account that ordered the instance.
func (p provisionRequest) matches(existing environment.Instance) bool {
	initial := environment.InitialOrder{PlanID: existing.PlanID, Parameters: existing.Request.Parameters}
	if existing.Request.Initial != nil {
		initial = *existing.Request.Initial
	}

	requested := p.instance

	if p.account != "" && p.account != existing.GlobalAccountID && p.account != existing.RuntimeTenant() {
		return false
	}

	if existing.ServiceID != requested.ServiceID || initial.PlanID != requested.PlanID || existing.PlatformRegion != requested.PlatformRegion {
		return false
	}

	if existing.Request.Adopted {
		return repeatsKnown(initial.Parameters, requested.Request.Parameters)
	}

	return existing.Request.OrganizationGUID == requested.Request.OrganizationGUID &&
		existing.Request.SpaceGUID == requested.Request.SpaceGUID &&
		sameObject(initial.Parameters, requested.Request.Parameters)
}

// repeatsKnown reports whether the request has all stored parameters with the same values. It ignores other parameters of the request,
// because Kyma Environment Broker did not store parameters that it did not know.
func repeatsKnown(stored, requested json.RawMessage) bool {
	known, sent := map[string]any{}, map[string]any{}
	if decode(stored, &known) != nil || decode(requested, &sent) != nil {
		return false
	}

	for name, value := range known {
		if !reflect.DeepEqual(sent[name], value) {
			return false
		}
	}

	return true
}

// equalJSON reports whether two values have the same JSON encoding. If encoding fails, it returns false.
func equalJSON[Value any](one, other Value) bool {
	first, err := json.Marshal(one)
	if err != nil {
		return false
	}

	second, err := json.Marshal(other)

	return err == nil && string(first) == string(second)
}
