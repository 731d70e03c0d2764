// Package operation holds what the Provisioner's processes share: the kinds of operations and the data that the steps work on.
package operation

import (
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// The kinds of operations, named as in the API.
const (
	KindProvisionNoInstall   = "ProvisionNoInstall"
	KindDeprovisionNoInstall = "DeprovisionNoInstall"
)

// Data is stored with the operation.
type Data struct {
	Runtime runtimes.Runtime `json:"runtime"`
}

// Operation is what the Provisioner's steps get and give back.
type Operation = process.Operation[Data]

// ShootEvent is the event that a change of a Shoot is. An operation that waits for it is due when the Shoot changes.
func ShootEvent(shootName string) string { return "shoot " + shootName }
