package adopt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// reasonShoot is the reason for the adoption of a Shoot, in timelines and in the audit log.
const reasonShoot = "adopted Shoot"

// ShootTaker adopts Shoots in the Provisioner. *provisionerclient.Client implements it.
type ShootTaker interface {
	AdoptShoot(ctx context.Context, caller provisionerclient.Caller, order provisionerclient.ShootAdoption) (provisionerclient.AdoptedShoot, error)
}

// ShootOrder is the order to turn a Shoot into an instance. Only ShootName and Account are required.
type ShootOrder struct {
	ShootName string
	// Account and SubAccount are the tenant's global account and subaccount.
	Account, SubAccount string
	// InstanceID defaults to an ID that is derived from the name of the Shoot, so that the order is idempotent.
	InstanceID string
	// Plan is the name or ID of a plan. It defaults to the only plan that covers the provider and the region.
	Plan string
	// Name is the display name. It defaults to the name of the Shoot.
	Name string
	// User owns the instance. Administrators default to this user.
	User           string
	Administrators []string
	// Platform and PlatformRegion identify the platform that owns the instance, and its region.
	Platform, PlatformRegion string
	// CredentialsBinding is the name of the CredentialsBinding that replaces the Shoot's SecretBinding. It defaults to the name of the
	// SecretBinding.
	CredentialsBinding string
	// Generation is the generation of the Shoot in an earlier dry run, or 0 to accept any generation.
	Generation int
	DryRun     bool
}

// ShootResult is the result of an adoption or of a dry run.
type ShootResult struct {
	Instance   environment.Instance
	Generation int
	// Earlier reports that the instance already existed.
	Earlier bool
	// ShootChanges are the fields of the Shoot that the adoption or the first update changes. OrderChanges are the fields of the
	// order that the first update changes because of the plan.
	ShootChanges, OrderChanges []objectdiff.Change
	// NotInOrder lists the paths of the Shoot's fields that a new Shoot for the same order would not have. Updates keep them, but
	// they are lost if the instance is suspended and resumed.
	NotInOrder []string
}

// Shoots turns Shoots into instances. All fields are required.
type Shoots struct {
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	Endpoints  *endpoints.Store
	Recorder   *audit.Recorder
	Catalog    *catalog.Catalog
	Quotas     quota.Checker
	Taker      ShootTaker
	Periods    expiry.Periods
	// Platform and Region are the defaults for orders that do not name a platform or its region.
	Platform, Region string
	Clock            clock.PassiveClock
}

// Adopt turns a Shoot into an instance. It first does a dry run, so that nothing changes if the plan or a quota forbids the
// instance. Errors carry a failure.Kind and say why the Shoot cannot be adopted.
func (s Shoots) Adopt(ctx context.Context, order ShootOrder) (ShootResult, error) {
	instance := s.newInstance(order)

	earlier, err := s.earlier(ctx, instance)
	if err != nil || earlier.Earlier {
		return earlier, err
	}

	caller := provisionerclient.Caller{Tenant: instance.GlobalAccountID, SubAccount: instance.SubAccountID}
	adoption := provisionerclient.ShootAdoption{
		Instance: instance, CredentialsBinding: order.CredentialsBinding, Generation: order.Generation, DryRun: true,
	}

	found, err := s.Taker.AdoptShoot(ctx, caller, adoption)
	if err != nil {
		return ShootResult{}, err
	}

	result := ShootResult{Generation: found.Generation, ShootChanges: found.Changes, NotInOrder: found.NotInOrder}

	result.Instance, result.OrderChanges, err = s.complete(ctx, instance, order.Plan, found)
	if err != nil || order.DryRun {
		return result, err
	}

	adoption.Instance, adoption.Generation, adoption.DryRun = result.Instance, found.Generation, false
	if _, err = s.Taker.AdoptShoot(ctx, caller, adoption); err != nil {
		return result, err
	}

	return result, s.store(ctx, result.Instance)
}

// newInstance returns the instance for an order, still without its plan and its cluster.
func (s Shoots) newInstance(order ShootOrder) environment.Instance {
	administrators := order.Administrators
	if len(administrators) == 0 && order.User != "" {
		administrators = []string{order.User}
	}

	return environment.Instance{
		ID:              cmp.Or(order.InstanceID, uuid.NewSHA1(uuid.NameSpaceOID, []byte("instance of Shoot "+order.ShootName)).String()),
		GlobalAccountID: order.Account, SubAccountID: order.SubAccount, Platform: cmp.Or(order.Platform, s.Platform),
		PlatformRegion: cmp.Or(order.PlatformRegion, s.Region), Name: cmp.Or(order.Name, order.ShootName), ShootName: order.ShootName,
		CreatedAt: s.Clock.Now(), UpdatedAt: s.Clock.Now(),
		Request: environment.Request{Adopted: true, User: order.User, Cluster: environment.Cluster{Administrators: append([]string{}, administrators...)}},
	}
}

// earlier returns the instance if it already exists with the same Shoot and account. If its ID belongs to another instance, the
// error is of kind failure.Conflict.
func (s Shoots) earlier(ctx context.Context, instance environment.Instance) (ShootResult, error) {
	existing, err := s.Instances.Get(ctx, s.DB.Reader(), instance.ID)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return ShootResult{}, s.nameTaken(ctx, instance.ShootName)
	case err != nil:
		return ShootResult{}, err
	case existing.ShootName != instance.ShootName || existing.GlobalAccountID != instance.GlobalAccountID:
		return ShootResult{}, failure.New(failure.Conflict, "instance %s already exists, with another Shoot or account", instance.ID)
	default:
		return ShootResult{Instance: existing, Earlier: true}, nil
	}
}

// nameTaken returns an error of kind failure.Conflict if an instance with this Shoot name already exists.
func (s Shoots) nameTaken(ctx context.Context, shootName string) error {
	owners, err := s.Instances.List(ctx, instances.Filter{ShootNames: []string{shootName}, Limit: 1})
	if err != nil || len(owners) == 0 {
		return err
	}

	return failure.New(failure.Conflict, "Shoot %q belongs to instance %s", shootName, owners[0].Instance.ID)
}

// complete adds the plan and the cluster to the instance, and returns the fields of the order that its first update changes. The
// error says why the plan or a quota forbids the instance.
func (s Shoots) complete(ctx context.Context, instance environment.Instance, wanted string, found provisionerclient.AdoptedShoot,
) (environment.Instance, []objectdiff.Change, error) {
	plan, err := s.planOf(wanted, found)
	if err != nil {
		return instance, nil, err
	}

	administrators := instance.Request.Cluster.Administrators
	instance.ServiceID, instance.PlanID, instance.PlanName, instance.MaintenanceVersion = s.Catalog.ServiceID(), plan.ID, plan.Name, plan.MaintenanceVersion()
	instance.Provider, instance.Region, instance.RuntimeID = found.Provider, found.Region, found.RuntimeID
	instance.ExpiresAt = s.Periods.End(plan.Name, instance.CreatedAt)
	instance.DeletionProtection, instance.Exclusive = plan.DeletionProtection, plan.Exclusive(instance.GlobalAccountID)
	instance.Request.Cluster = found.Cluster
	instance.Request.Cluster.Administrators, instance.Request.Cluster.SharedCredentials = administrators, plan.SharedCredentials

	if instance.Request.Parameters, err = json.Marshal(map[string]string{"name": instance.Name}); err != nil {
		return instance, nil, fmt.Errorf("encoding the parameters: %w", err)
	}

	changes, note, err := FirstChange(plan, instance, provisionerclient.UpgradeOf(instance, instance))
	if note != "" {
		return instance, nil, failure.New(failure.Conflict, "plan %s rejects the Shoot: %s", plan.Name, note)
	}

	if err == nil {
		err = checkExclusive(ctx, s.DB, s.Instances, instance)
	}

	if failure.Is(err, failure.Permanent) {
		err = failure.New(failure.Conflict, "%s", failure.Of(err).Text)
	}

	if err == nil {
		err = s.Quotas.Look(ctx, instance)
	}

	if exceeded, is := errors.AsType[*quota.ExceededError](err); is {
		err = failure.New(failure.Conflict, "%s", exceeded.Error())
	}

	return instance, changes, err
}

// planOf returns the plan whose name or ID is wanted. If wanted is empty, it returns the only plan that covers the Shoot.
func (s Shoots) planOf(wanted string, found provisionerclient.AdoptedShoot) (*catalog.Plan, error) {
	var plans []*catalog.Plan

	names := []string{}

	for _, plan := range s.Catalog.Plans() {
		if (wanted == "" || wanted == plan.Name || wanted == plan.ID) && plan.Covers(found.Provider, found.Region) {
			plans, names = append(plans, plan), append(names, plan.Name)
		}
	}

	slices.Sort(names)

	switch {
	case len(plans) == 1:
		return plans[0], nil
	case wanted != "":
		return nil, failure.New(failure.Conflict, "there is no plan %q for provider %s in region %s", wanted, found.Provider, found.Region)
	case len(plans) == 0:
		return nil, failure.New(failure.Conflict, "no plan covers provider %s in region %s", found.Provider, found.Region)
	default:
		return nil, failure.New(failure.Conflict, "several plans cover provider %s in region %s: choose one of %s",
			found.Provider, found.Region, strings.Join(names, ", "))
	}
}

// store adds the instance, the operation that created it, and the entry in the audit log, in one transaction.
func (s Shoots) store(ctx context.Context, instance environment.Instance) error {
	operation, err := environment.NewOperation(environment.KindProvision, instance, nil, instance.CreatedAt)
	if err != nil {
		return err
	}

	data := environment.Data{Instance: instance, Provisioning: operation.ID, Ordered: true, TargetSecret: instance.Request.Cluster.TargetSecret}
	data.Instance.Request = environment.Request{} // the row contains it

	if operation.Payload, err = json.Marshal(data); err != nil {
		return fmt.Errorf("encoding an operation: %w", err)
	}

	operation.Why = reasonShoot

	insertion, err := s.Instances.Insertion(instance)
	if err != nil {
		return err
	}

	err = s.DB.InTx(ctx, func(tx storage.Tx) error {
		if err := s.Quotas.Create(ctx, tx, instance); err != nil {
			return err
		}

		if err := storage.Apply(ctx, tx, insertion); err != nil {
			return err
		}

		if err := s.Operations.InsertEnded(ctx, tx, operation,
			operations.Ending{State: process.Succeeded, Began: instance.CreatedAt, At: instance.CreatedAt}); err != nil {
			return err
		}

		if err := s.Endpoints.Add(ctx, tx, instance.ID, instance.CreatedAt); err != nil {
			return err
		}

		return s.Recorder.Record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionAdopt, InstanceID: instance.ID, Status: http.StatusOK, Reason: reasonShoot, After: instance.Shown(),
		})
	})

	if exceeded, is := errors.AsType[*quota.ExceededError](err); is {
		return failure.New(failure.Conflict, "%s", exceeded.Error())
	}

	if storage.IsDuplicate(err) {
		return failure.New(failure.Conflict, "a concurrent request has added an instance with the same ID or Shoot, or the only instance that "+
			"the plan allows for the account: delete that instance and repeat the command, because the Provisioner already has the runtime %s",
			instance.RuntimeID)
	}

	return err
}
