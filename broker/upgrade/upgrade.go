// Package upgrade accepts upgrades of Kyma and of clusters, which operators order for single instances. It checks that the
// instance has something to upgrade and no unfinished operation, and chooses the Kubernetes version. The processes are in
// process/upgradekyma and process/upgradecluster.
package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// ErrBusy is wrapped by the errors of Upgrade and Accept if another operation of the instance has not ended.
var ErrBusy = errors.New("the instance has an unfinished operation")

// ErrChanged is wrapped by the errors of Upgrade and Accept if the versions of the upgrade would differ from Order.Planned.
var ErrChanged = errors.New("the instance has changed since the upgrade was planned")

// Versions are the versions before and after an upgrade. To is empty if the Kyma version is chosen only when the operation runs.
type Versions struct{ From, To string }

// Order is a request to upgrade an instance.
type Order struct {
	InstanceID string
	// Kind is one of environment.UpgradeKinds.
	Kind string
	// Version is the version after the upgrade. If it is empty, an upgrade of a cluster uses the plan's version. An upgrade of Kyma
	// uses the account's version, or the default if the account has none.
	Version string
	// RollsBack is the ID of the Kyma upgrade to roll back. It is empty for an ordinary upgrade. If it is set, Version is
	// ignored.
	RollsBack string
	// DryRun reports whether the operation only describes the upgrade and changes nothing.
	DryRun bool
	// Planned contains the planned versions. Nil means that there was no plan.
	Planned *Versions
	// NotAfter is the latest time at which the operation may start. If it has not started by then, it fails with
	// failure.ReasonNotStarted. Zero means no limit.
	NotAfter time.Time
	// OperationID is the ID of the new operation. If it is empty, the operation gets a random ID.
	OperationID string
	// PredecessorID is the ID of the upgrade that the new operation repeats. It is empty for a first attempt. Why is the message of
	// the first timeline entry. If Why is empty, the message is the kind.
	PredecessorID, Why string
}

// Accepted describes an accepted upgrade.
type Accepted struct {
	Versions

	OperationID string
	// Instance is the instance before the upgrade.
	Instance environment.Instance
	// Components are the Kyma components that the catalog lists for the version, in the order of their installation. Operators can
	// add other components in the control plane. Components is empty for an upgrade of a cluster, and while the version is not
	// known.
	Components []string
}

// Upgrader accepts upgrades. It is stateless and safe for concurrent use.
type Upgrader struct {
	// DB is the database that the stores use.
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	Catalog    *catalog.Catalog
	// Wake makes the engine look for due operations. It is called after a commit and must not block.
	Wake  func()
	Clock clock.PassiveClock
}

// Upgrade accepts the upgrade of an instance. It does not call other systems.
//
// Errors come from the database or carry a failure.Kind: NotFound if the instance does not exist, Invalid if there is nothing to
// upgrade or the version is invalid, Conflict if the instance has no runtime, or if another operation of the instance has not
// ended.
func (u Upgrader) Upgrade(ctx context.Context, order Order) (Accepted, error) {
	var accepted Accepted

	err := u.DB.InTx(ctx, func(tx storage.Tx) error {
		var err error

		accepted, err = u.Accept(ctx, tx, order)

		return err
	})

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return Accepted{}, failure.New(failure.NotFound, "The instance does not exist.")
	case storage.IsDuplicate(err), storage.IsDeadlock(err):
		return Accepted{}, failure.Wrap(failure.Conflict, err, "Another request changed the instance first. Try again.")
	case err != nil:
		return Accepted{}, err
	}

	u.Wake()

	return accepted, nil
}

// Accept does the work of Upgrade in the caller's transaction, and returns the same errors, or storage.ErrNotFound. It first sets
// the time of the instance's last change. This write locks the instance, so concurrent requests run one after another. After
// errors with a failure.Kind, the transaction can still be used. The caller must wake the engine after the commit.
func (u Upgrader) Accept(ctx context.Context, tx storage.Tx, order Order) (Accepted, error) {
	now := u.Clock.Now()

	present, err := u.Instances.Touch(ctx, tx, order.InstanceID, now)
	if err != nil {
		return Accepted{}, err
	}

	if !present {
		return Accepted{}, storage.ErrNotFound
	}

	instance, err := u.Instances.Get(ctx, tx, order.InstanceID)
	if err != nil {
		return Accepted{}, err
	}

	past, err := u.Operations.OfInstance(ctx, tx, instance.ID)
	if err != nil {
		return Accepted{}, err
	}

	if err := checkState(instance, past); err != nil {
		return Accepted{}, err
	}

	resolve := u.resolve
	if order.RollsBack != "" {
		resolve = func(instance environment.Instance, order Order) (environment.Upgrade, Accepted, error) {
			return u.resolveRollback(ctx, tx, instance, past, order)
		}
	}

	upgrade, accepted, err := resolve(instance, order)
	if err != nil {
		return Accepted{}, err
	}

	if order.Planned != nil && *order.Planned != accepted.Versions {
		return Accepted{}, failure.Wrap(failure.Conflict, ErrChanged, "The upgrade was planned %s, and would now be %s.", *order.Planned, accepted.Versions)
	}

	upgrade.NotAfter = order.NotAfter

	operation, err := newOperation(ctx, instance, order, upgrade, accepted, now)
	if err != nil {
		return Accepted{}, err
	}

	accepted.OperationID, accepted.Instance = operation.ID, instance

	return accepted, u.Operations.Accept(ctx, tx, operation)
}

// String returns the versions as part of a sentence.
func (v Versions) String() string {
	return fmt.Sprintf("from version %s to %s", cmp.Or(v.From, "unknown"), cmp.Or(v.To, "the default"))
}

// Preview returns the versions before and after an upgrade of the instance. It does not access the database, so it does not check
// whether the instance has a runtime or an unfinished operation. Apart from these checks, it returns the same errors as Upgrade.
func (u Upgrader) Preview(instance environment.Instance, order Order) (Versions, error) {
	_, accepted, err := u.resolve(instance, order)

	return accepted.Versions, err
}

// checkState rejects upgrades of instances that have no runtime, or that have an unfinished operation.
func checkState(instance environment.Instance, past []process.Record) error {
	if unfinished := environment.Unfinished(past); len(unfinished) > 0 {
		running := unfinished[0]

		return failure.Wrap(failure.Conflict, ErrBusy,
			"Operation %s (%s) of the instance has not ended. Wait until it ends, or cancel it.", running.ID, running.Kind)
	}

	switch phase := environment.PhaseOf(past); {
	case phase == environment.Active:
		return nil
	case instance.Expired():
		return failure.New(failure.Conflict, "The instance has expired and has no runtime to upgrade. It can only be deleted.")
	case phase == environment.Suspended:
		return failure.New(failure.Conflict, "The instance is suspended and has no runtime to upgrade. Resume the instance first.")
	case phase == environment.DeletionFailed:
		return failure.New(failure.Conflict, "The deletion of the instance has failed. Delete the instance again.")
	default:
		return failure.New(failure.Conflict, "The instance's runtime is not complete (%s). Retry the failed operation, then upgrade.", phase)
	}
}

// resolve checks the order against the instance and its plan. It returns the upgrade, and the versions and components for the response.
func (u Upgrader) resolve(instance environment.Instance, order Order) (environment.Upgrade, Accepted, error) {
	if instance.Request.Cluster.Own != nil {
		return environment.Upgrade{}, Accepted{}, failure.New(failure.Invalid,
			"The cluster belongs to the tenant, who also upgrades it. The broker upgrades only clusters that it has created.")
	}

	plan, known := u.Catalog.ByID(instance.PlanID)
	if !known {
		return environment.Upgrade{}, Accepted{}, failure.New(failure.Conflict,
			"The catalog no longer has plan %s. Restore the plan, then upgrade.", instance.PlanName)
	}

	if err := CheckVersion(order.Kind, order.Version); err != nil {
		return environment.Upgrade{}, Accepted{}, err
	}

	if order.Kind == environment.KindUpgradeKyma {
		return resolveKyma(plan, instance, order)
	}

	return resolveCluster(plan, instance, order)
}

// resolveKyma checks that the plan can install the version on the instance.
func resolveKyma(plan *catalog.Plan, instance environment.Instance, order Order) (environment.Upgrade, Accepted, error) {
	installed := instance.Request.Cluster.Kyma

	switch {
	case installed == nil && plan.InstallsKyma():
		return environment.Upgrade{}, Accepted{}, failure.New(failure.Invalid,
			"The instance was created without Kyma. Only new instances of plan %s have Kyma.", plan.Name)
	case installed == nil:
		return environment.Upgrade{}, Accepted{}, failure.New(failure.Invalid, "The instance has no Kyma to upgrade: plan %s does not install Kyma.", plan.Name)
	}

	if installed.InstalledBy(environment.InstallerLifecycleManager) {
		return resolveChannel(plan, *installed, order)
	}

	wanted := *installed
	wanted.Version = order.Version

	installation, err := plan.Installation(wanted)
	if err != nil {
		return environment.Upgrade{}, Accepted{}, failure.Wrap(failure.Conflict, err, "%s", failure.Of(err).Text)
	}

	accepted := Accepted{Versions: Versions{installed.Version, order.Version}}

	if order.Version != "" {
		for _, component := range installation.Components {
			accepted.Components = append(accepted.Components, component.Name)
		}
	}

	return environment.Upgrade{Version: order.Version, DryRun: order.DryRun}, accepted, nil
}

// resolveChannel checks an upgrade of Kyma on an instance where Lifecycle Manager installs it. Such an upgrade applies the plan's
// channel and template.
func resolveChannel(plan *catalog.Plan, installed environment.Kyma, order Order) (environment.Upgrade, Accepted, error) {
	if order.Version != "" {
		return environment.Upgrade{}, Accepted{}, failure.New(failure.Invalid,
			"Lifecycle Manager installs Kyma on this instance, so the Kyma version cannot be chosen. Omit the version to apply the plan's channel.")
	}

	if _, err := plan.LifecycleManagerSettings(installed); err != nil {
		return environment.Upgrade{}, Accepted{}, failure.Wrap(failure.Conflict, err, "%s", failure.Of(err).Text)
	}

	return environment.Upgrade{DryRun: order.DryRun}, Accepted{}, nil
}

// resolveCluster chooses the Kubernetes version: the ordered one, or else the plan's version, unless the cluster already has a
// later one.
func resolveCluster(plan *catalog.Plan, instance environment.Instance, order Order) (environment.Upgrade, Accepted, error) {
	current := instance.Request.Cluster.KubernetesVersion
	upgrade := environment.Upgrade{Version: order.Version, DryRun: order.DryRun}

	if order.Version == "" {
		upgrade.Version = plan.Upgrade(instance.Request.Cluster).KubernetesVersion
		upgrade.MaintenanceVersion = plan.MaintenanceVersion()
	} else if err := checkKubernetes(current, order.Version); err != nil {
		return environment.Upgrade{}, Accepted{}, err
	}

	return upgrade, Accepted{Versions: Versions{current, upgrade.Version}}, nil
}

// newOperation returns the operation with the requester, the trace and the audit entry.
func newOperation(ctx context.Context, instance environment.Instance, order Order, upgrade environment.Upgrade, accepted Accepted, now time.Time,
) (process.New, error) {
	operation, err := environment.NewUpgrade(order.Kind, instance, upgrade, now)
	if err != nil {
		return operation, err
	}

	field := map[string]string{environment.KindUpgradeKyma: "kymaVersion", environment.KindUpgradeCluster: "kubernetesVersion"}[order.Kind]
	entry := auditlog.Entry{
		By:     audit.ActorOf(ctx),
		Before: auditlog.Fields{field: accepted.From},
		After:  auditlog.Fields{field: cmp.Or(accepted.To, "chosen by the operation")},
	}

	if order.DryRun {
		entry.After["dryRun"] = true
	}

	if order.RollsBack != "" {
		entry.After["rollsBack"] = order.RollsBack
	}

	operation.OrderedBy, operation.Trace = entry.By.Name(), tracing.Traceparent(ctx)
	operation.ID, operation.PredecessorID, operation.Why = cmp.Or(order.OperationID, operation.ID), order.PredecessorID, order.Why
	operation.Audit, err = entry.Encode()

	return operation, err
}
