// Package operation defines the terms that all processes of the Provisioner share: the kinds of operations, the data that steps
// work on, and the status that clients see.
//
// Kinds and data are stored in the database. docs/contributor/add-a-mutation.md lists the places of a new kind. The zero value of
// a new field of Data must be correct for operations that an older replica accepted.
package operation

import (
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// The kinds of operations, as the database stores them. They equal the values of the API's enum, except WakeUp, RollBack and
// UpgradeRuntime: clients of Kyma Provisioner do not support these, so PublicKind maps them to other kinds. UpgradeRuntime upgrades
// Kubernetes and then Kyma.
const (
	KindProvision            = "Provision"
	KindProvisionNoInstall   = "ProvisionNoInstall"
	KindUpgrade              = "Upgrade"
	KindRollBack             = "RollBack"
	KindUpgradeRuntime       = "UpgradeRuntime"
	KindUpgradeShoot         = "UpgradeShoot"
	KindHibernate            = "Hibernate"
	KindWakeUp               = "WakeUp"
	KindDeprovision          = "Deprovision"
	KindDeprovisionNoInstall = "DeprovisionNoInstall"
	KindReconnectRuntime     = "ReconnectRuntime"
)

// Kinds lists all kinds of operations.
func Kinds() []string {
	return []string{
		KindProvision, KindProvisionNoInstall, KindUpgrade, KindRollBack, KindUpgradeRuntime, KindUpgradeShoot, KindHibernate, KindWakeUp,
		KindDeprovision, KindDeprovisionNoInstall, KindReconnectRuntime,
	}
}

// Provisions reports whether operations of the given kind create runtimes.
func Provisions(kind string) bool { return kind == KindProvision || kind == KindProvisionNoInstall }

// Deprovisions reports whether operations of the given kind remove runtimes.
func Deprovisions(kind string) bool {
	return kind == KindDeprovision || kind == KindDeprovisionNoInstall
}

// UpgradesKyma reports whether operations of the given kind upgrade Kyma, alone or after Kubernetes.
func UpgradesKyma(kind string) bool { return kind == KindUpgrade || kind == KindUpgradeRuntime }

// PublicKind returns the kind that the API shows for a stored kind: UpgradeShoot for WakeUp, Upgrade for RollBack and UpgradeRuntime,
// and every other kind unchanged.
func PublicKind(kind string) string {
	switch kind {
	case KindWakeUp:
		return KindUpgradeShoot
	case KindRollBack, KindUpgradeRuntime:
		return KindUpgrade
	default:
		return kind
	}
}

// KindsOf is the inverse of PublicKind: it returns the stored kinds that the API shows as the public kind.
func KindsOf(public string) []string {
	switch public {
	case KindUpgradeShoot:
		return []string{KindUpgradeShoot, KindWakeUp}
	case KindUpgrade:
		return []string{KindUpgrade, KindUpgradeRuntime, KindRollBack}
	default:
		return []string{public}
	}
}

// Data is stored with the operation as sealed JSON. New fields must be optional, because operations that an older replica
// accepted lack them. Existing fields must not be renamed.
type Data struct {
	// Runtime is the runtime after the operation. The last step of an upgrade copies the configuration from this field to the row of
	// the runtime.
	Runtime runtimes.Runtime `json:"runtime"`
	// Asleep reports whether the cluster will be hibernated after the operation. Steps inside the cluster are then skipped.
	Asleep bool `json:"asleep,omitempty"`
	// FormerKyma is the Kyma configuration that an upgrade replaces, for a later RollBack. It is set even if the upgrade fails.
	FormerKyma *spec.Kyma `json:"formerKyma,omitempty"`
	// Registered reports whether the runtime is registered in Director. It is set when a creation is accepted, and by the step that
	// gets a token for the runtime's agent from Director. In operations of other kinds, it may be false even if the runtime is
	// registered.
	Registered bool `json:"registered,omitempty"`
	// DroppedPools contains the names of the worker pools that an upgrade removes.
	DroppedPools []string `json:"droppedPools,omitempty"`
}

// Order decodes the order that the operation carries out. Its error is failure.Internal, because orders are validated before
// they are stored.
func (d Data) Order() (spec.Runtime, error) { return OrderOf(d.Runtime) }

// OrderOf decodes the order for a runtime. Its error is failure.Internal.
func OrderOf(runtime runtimes.Runtime) (spec.Runtime, error) {
	order, err := spec.Decode(runtime.Configuration)
	if err != nil {
		return order, failure.Wrap(failure.Internal, err, "the configuration of runtime %s cannot be read", runtime.ID)
	}

	return order, nil
}

// Operation is the input and the result of the Provisioner's steps.
type Operation = process.Operation[Data]

// ShootEvent returns the name of the event that a change of the Shoot triggers. A step that waits for Gardener stores the name
// in WaitingFor. When the Shoot changes, the waker of package service makes the operation due.
func ShootEvent(shootName string) string { return "shoot " + shootName }

// Registered returns the condition that the runtime is registered in Director. A runtime that was ordered while Director was disabled is
// not registered.
func Registered() process.Condition[Data] {
	return process.Condition[Data]{
		Text:  "APP_DIRECTOR_ENABLED is set, the runtime is registered in Director",
		Holds: func(op Operation) bool { return op.Data.Registered },
	}
}
