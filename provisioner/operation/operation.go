// Package operation defines what the processes of the Provisioner share: the kinds of operations, the data that steps work on,
// and the status that clients see.
package operation

import (
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// The kinds of operations. They are stored, and named as in the API. Clients of Kyma Provisioner do not know two of them: the API
// shows WakeUp as UpgradeShoot and RollBack as Upgrade; see PublicKind.
const (
	KindProvision            = "Provision"
	KindProvisionNoInstall   = "ProvisionNoInstall"
	KindUpgrade              = "Upgrade"
	KindRollBack             = "RollBack"
	KindUpgradeShoot         = "UpgradeShoot"
	KindHibernate            = "Hibernate"
	KindWakeUp               = "WakeUp"
	KindDeprovision          = "Deprovision"
	KindDeprovisionNoInstall = "DeprovisionNoInstall"
	KindReconnectRuntime     = "ReconnectRuntime"
)

// Provisions reports whether operations of the kind create runtimes.
func Provisions(kind string) bool { return kind == KindProvision || kind == KindProvisionNoInstall }

// Deprovisions reports whether operations of the kind remove runtimes.
func Deprovisions(kind string) bool {
	return kind == KindDeprovision || kind == KindDeprovisionNoInstall
}

// PublicKind returns the kind under which the API shows operations of the kind.
func PublicKind(kind string) string {
	switch kind {
	case KindWakeUp:
		return KindUpgradeShoot
	case KindRollBack:
		return KindUpgrade
	default:
		return kind
	}
}

// Data is stored with the operation as JSON. A field may be added; an operation that an older replica accepted lacks it.
type Data struct {
	// Runtime is the runtime as the operation will leave it. A step at the end of the process copies it to the row of the
	// runtime.
	Runtime runtimes.Runtime `json:"runtime"`
	// Asleep reports whether the cluster is hibernated after the operation: its API server does not answer.
	Asleep bool `json:"asleep,omitempty"`
	// FormerKyma is the Kyma that an upgrade replaces, for a later RollBack. It is kept whether or not the upgrade succeeds.
	FormerKyma *spec.Kyma `json:"formerKyma,omitempty"`
	// Registered reports whether the runtime was registered in Director when the operation was accepted.
	Registered bool `json:"registered,omitempty"`
}

// Order returns the order that the operation carries out.
func (d Data) Order() (spec.Runtime, error) { return OrderOf(d.Runtime) }

// OrderOf returns the order of a runtime.
func OrderOf(runtime runtimes.Runtime) (spec.Runtime, error) {
	order, err := spec.Decode(runtime.Configuration)
	if err != nil {
		return order, failure.Wrap(failure.Internal, err, "the configuration of runtime %s cannot be read", runtime.ID)
	}

	return order, nil
}

// Operation is what the steps of the Provisioner receive and return.
type Operation = process.Operation[Data]

// ShootEvent returns the event that a change of the Shoot triggers. Operations that wait for it become due.
func ShootEvent(shootName string) string { return "shoot " + shootName }
