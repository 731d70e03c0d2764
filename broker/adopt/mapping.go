package adopt

import (
	"cmp"
	"context"
	"slices"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// The types and states of KEB's operations.
const (
	typeProvision   = "provision"
	typeDeprovision = "deprovision"
	stateSucceeded  = "succeeded"
	stateCanceled   = "canceled"
)

// kindOf returns the kind that corresponds to one of KEB's operations, or "" if its type is unknown.
func (i formerInstance) kindOf(operation formerOperation) string {
	switch {
	case operation.Type == typeProvision && operation.ID == i.operations[0].ID:
		return environment.KindProvision
	case operation.Type == typeProvision:
		return environment.KindResume
	case operation.Type == typeDeprovision && operation.Temporary:
		return environment.KindSuspend
	case operation.Type == typeDeprovision:
		return environment.KindDeprovision
	case slices.Contains([]string{environment.KindUpdate, environment.KindUpgradeKyma, environment.KindUpgradeCluster}, operation.Type):
		return operation.Type
	default:
		return ""
	}
}

// ending returns the result of the operation. Any state except succeeded and canceled counts as failed.
func (o formerOperation) ending() operations.Ending {
	ending := operations.Ending{State: process.Succeeded, Began: o.CreatedAt, At: o.CreatedAt}
	if o.UpdatedAt.After(o.CreatedAt) {
		ending.At = o.UpdatedAt
	}

	switch o.State {
	case stateSucceeded:
	case stateCanceled:
		ending.State = process.Canceled
	default:
		ending.State = process.Failed
		ending.Problem = process.Problem{
			Message: "the operation failed in Kyma Environment Broker", Detail: o.Description,
			Reason: failure.ReasonInternal, Component: failure.ComponentBroker,
		}
	}

	return ending
}

// refusal returns the reason why the instance cannot be adopted, or "" if it can be adopted.
func (i formerInstance) refusal() string {
	switch {
	case len(i.operations) == 0 || i.operations[0].Type != typeProvision:
		return "Kyma Environment Broker has no operation that created it"
	case i.DeletedAt.Year() > 1:
		return "its deletion has left something behind: delete it again in Kyma Environment Broker"
	}

	newest := i.newest(typeProvision)

	if removal := i.newest(typeDeprovision); removal != nil && removal.CreatedAt.After(newest.CreatedAt) {
		switch {
		case !removal.Temporary:
			return "it is being deleted: wait until Kyma Environment Broker has deleted it"
		case removal.State != stateSucceeded:
			return "its suspension has failed: suspend it again in Kyma Environment Broker"
		default:
			return ""
		}
	}

	if newest.State != stateSucceeded {
		return "its creation or resumption has not succeeded: delete it in Kyma Environment Broker, and order it again"
	}

	return ""
}

// instanceOf converts a row of KEB to an instance. notes are remarks for the report.
func (a *Adopter) instanceOf(ctx context.Context, former formerInstance) (_ environment.Instance, notes []string, _ error) {
	if reason := former.refusal(); reason != "" {
		return environment.Instance{}, nil, failure.New(failure.Permanent, "%s", reason)
	}

	plan, err := a.Catalog.Plan(former.ServiceID, former.PlanID)
	if err != nil {
		return environment.Instance{}, nil, failure.New(failure.Permanent, "the catalog has no plan %s of service %s", former.PlanID, former.ServiceID)
	}

	stored, err := parse(former.Parameters)
	if err != nil {
		return environment.Instance{}, nil, failure.New(failure.Permanent, "%s", err)
	}

	secret := cmp.Or(former.newest(typeProvision).Secret, text(stored.Parameters, fieldTargetSecret))

	request, credentials, err := stored.request(a.Cipher)
	if err != nil {
		return environment.Instance{}, nil, failure.New(failure.Permanent, "%s", err)
	}

	instance := environment.Instance{
		ID: former.ID, ServiceID: former.ServiceID, PlanID: plan.ID, PlanName: plan.Name, MaintenanceVersion: plan.MaintenanceVersion(),
		GlobalAccountID: former.Account, SubAccountID: former.SubAccount.String, Platform: a.Platform.Name,
		PlatformRegion: cmp.Or(stored.PlatformRegion, a.Region),
		ShootName:      former.newest(typeProvision).ShootName, RuntimeID: former.RuntimeID, DashboardURL: former.DashboardURL,
		Suspended: former.RuntimeID == "", ExpiresAt: a.Periods.End(plan.Name, former.CreatedAt), ExpiredAt: former.ExpiredAt.Time,
		Exclusive: plan.Exclusive(former.Account), Request: request, CreatedAt: former.CreatedAt, UpdatedAt: former.UpdatedAt,
	}

	if err := a.checkPlatform(instance); err != nil {
		return instance, nil, err
	}

	if account := former.SubscriptionAccount.String; account != "" && account != instance.GlobalAccountID {
		instance.SubscriptionAccountID = account
	}

	resolved, violations := plan.Resolve(instance)
	if err := violations.Err(); err != nil {
		if instance.Suspended || plan.OwnCluster {
			return instance, nil, failure.New(failure.Permanent, "its parameters break rules of the plan: %s", failure.Of(err).ForOperators())
		}

		notes = append(notes, "its parameters break rules of the plan, so updates must correct them: "+failure.Of(err).ForOperators())
		resolved.Name = cmp.Or(text(stored.Parameters, "name"), instance.ShootName)
		resolved.Request.Cluster.SharedCredentials = plan.SharedCredentials
		resolved.Request.Cluster.Administrators = administratorsOf(stored.Parameters, request.User)
	}

	resolved.DeletionProtection = false // KEB has no deletion protection

	if resolved, err = a.withCluster(ctx, resolved, plan, secret); err != nil {
		return resolved, nil, err
	}

	resolved.Request.Cluster.ServiceManager, resolved.Request.Cluster.Kyma = credentials, nil

	return resolved, notes, nil
}

// checkPlatform returns an error if the platform could not reach the instance: it would get the responses for a missing instance.
func (a *Adopter) checkPlatform(instance environment.Instance) error {
	if a.Platform.AllowsRegion(instance.PlatformRegion) && a.Platform.AllowsTenant(instance.GlobalAccountID) {
		return nil
	}

	return failure.New(failure.Permanent, "the regions or tenants of platform %s exclude the instance, whose region is %s and whose account is %s",
		a.Platform.Name, instance.PlatformRegion, instance.GlobalAccountID)
}

// withCluster replaces the cluster of the instance with the cluster of its runtime, if the instance has a runtime. secret is the
// target secret that KEB stored. A tenant's own cluster is no runtime of the Provisioner: KEB made up its runtime ID, so withCluster
// clears the ID.
func (a *Adopter) withCluster(ctx context.Context, instance environment.Instance, plan *catalog.Plan, secret string) (environment.Instance, error) {
	if plan.OwnCluster {
		instance.RuntimeID = ""

		return instance, nil
	}

	instance.Request.Cluster.TargetSecret = secret
	if instance.RuntimeID == "" {
		return instance, nil
	}

	found, err := a.runtime(ctx, &instance)
	if err != nil {
		return instance, err
	}

	if found.ShootName != instance.ShootName {
		return instance, failure.New(failure.Permanent, "its runtime has the Shoot %s, but the operation that created it names the Shoot %s", found.ShootName, instance.ShootName)
	}

	planned := instance.Request.Cluster
	instance.Provider, instance.Region, instance.Request.Cluster = found.Provider, found.Region, found.Cluster
	cluster := &instance.Request.Cluster
	cluster.Administrators, cluster.SharedCredentials = planned.Administrators, planned.SharedCredentials

	return instance, nil
}

// runtime returns the runtime of the instance. If the runtime belongs to another account, the instance was moved between accounts
// before KEB recorded the first account. runtime then stores the account of the runtime in instance.SubscriptionAccountID.
func (a *Adopter) runtime(ctx context.Context, instance *environment.Instance) (provisionerclient.Adopted, error) {
	found, err := a.Runtimes.Adopted(ctx, instance.RuntimeTenant(), instance.RuntimeID)
	if !failure.Is(err, failure.NotFound) && !failure.Is(err, failure.Conflict) {
		return found, err
	}

	account, err := a.Runtimes.Account(ctx, instance.RuntimeID)
	if failure.Is(err, failure.NotFound) || err == nil && account == instance.RuntimeTenant() {
		return found, failure.New(failure.Permanent, "the Provisioner does not have its runtime %s: run 'provisioner adopt' first", instance.RuntimeID)
	}

	if err != nil {
		return found, err
	}

	instance.SubscriptionAccountID = account

	return a.Runtimes.Adopted(ctx, account, instance.RuntimeID)
}

// administratorsOf returns the administrators in the parameters, or else the user who ordered the instance.
func administratorsOf(parameters map[string]any, user string) []string {
	listed, _ := parameters["administrators"].([]any)
	administrators := []string{}

	for _, each := range listed {
		if name, is := each.(string); is {
			administrators = append(administrators, name)
		}
	}

	if len(administrators) == 0 && user != "" {
		return []string{user}
	}

	return administrators
}
