// Package operation holds what the Provisioner's processes share: the kinds of operations and the data that the steps work on.
package operation

import (
	"encoding/json"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// The kinds of operations, named as in the API but for two that clients of the former Provisioner do not know: WakeUp is told as
// UpgradeShoot, RollBack as Upgrade.
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

// Provisions reports whether operations of the kind make runtimes.
func Provisions(kind string) bool { return kind == KindProvision || kind == KindProvisionNoInstall }

// Deprovisions reports whether operations of the kind remove runtimes.
func Deprovisions(kind string) bool {
	return kind == KindDeprovision || kind == KindDeprovisionNoInstall
}

// Data is stored with the operation.
type Data struct {
	// Runtime is the runtime as the operation is to leave it. Its row is brought up to that when the operation has done its work.
	Runtime runtimes.Runtime `json:"runtime"`
	// Asleep says that the cluster is hibernated when the operation has done its work: nobody answers in it.
	Asleep bool `json:"asleep,omitempty"`
	// FormerKyma is what an upgrade found installed, so that a later RollBack can put it back: whether the upgrade succeeds or not.
	FormerKyma *model.KymaConfigInput `json:"formerKyma,omitempty"`
	// Registered says that the runtime was registered in Director when the operation was accepted.
	Registered bool `json:"registered,omitempty"`
}

// Order is what the runtime was, or is to be, ordered as.
func (d Data) Order() (model.ProvisionRuntimeInput, error) { return OrderOf(d.Runtime) }

// OrderOf reads the order of a runtime.
func OrderOf(runtime runtimes.Runtime) (model.ProvisionRuntimeInput, error) {
	var order model.ProvisionRuntimeInput
	if err := json.Unmarshal(runtime.Configuration, &order); err != nil {
		return order, failure.Wrap(failure.Internal, err, "the configuration of runtime %s cannot be read", runtime.ID)
	}

	return order, nil
}

// Operation is what the Provisioner's steps get and give back.
type Operation = process.Operation[Data]

// ShootEvent is the event that a change of a Shoot is. An operation that waits for it is due when the Shoot changes.
func ShootEvent(shootName string) string { return "shoot " + shootName }
