package environment

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// dataVersion is the version of Data's stored form that this code writes. Rows without a version have version 1.
//
// New optional fields need no new version. Increment the version if older replicas would misread the changed rows, and make
// UnmarshalJSON convert older forms. The release before the one that writes a new version must already be able to read this
// version, because replicas of both releases run at the same time during a rolling update.
const dataVersion = 1

// Data is the state that the steps of an operation share. The engine stores it with the operation, encrypted, when a stage
// finishes, when a step waits or fails, and when a step calls Save. If a stage restarts after a crash, its steps get the stored
// data, so they must not rely on changes that an interrupted attempt has not saved. The JSON names are stored and never change.
type Data struct {
	// Instance is the instance as it was when the operation was accepted, with the changes that the operation has made since. If
	// the operation provisions or resumes the instance, its first step loads the instance instead.
	Instance Instance `json:"instance,omitzero"`
	// TargetSecret is the name of the Gardener secret with the infrastructure credentials. EarlierSecrets are other names that
	// earlier attempts of the same order used, before the configuration changed. The Provisioner may have accepted an order with
	// any of these names.
	TargetSecret   string   `json:"targetSecret,omitempty"`
	EarlierSecrets []string `json:"earlierSecrets,omitempty"`
	// Provisioning is the ID of the operation that ordered the runtime. The Provisioner received this ID as the idempotency key
	// of the order.
	Provisioning string `json:"provisioning,omitempty"`
	// KymaChosenBy is the ID of the operation that chose the Kyma version in Instance. A retry chooses the version again.
	KymaChosenBy string `json:"kymaChosenBy,omitempty"`
	// ConsoleSince is when the operation first failed to get the URL of the runtime's console, or zero.
	ConsoleSince time.Time `json:"consoleSince,omitzero"`
	// Unanswered is the number of consecutive requests to create an AvS evaluation whose responses were lost.
	Unanswered int `json:"unanswered,omitempty"`
	// Ordered means that the operation has ordered a runtime or is about to. It is stored before the order is sent for the first
	// time, so that a crash cannot leave behind a runtime that nobody knows of.
	Ordered bool `json:"ordered,omitempty"`
	// ProvisionerOperationID is the ID of the Provisioner's operation that this operation waits for.
	ProvisionerOperationID string `json:"provisionerOperationID,omitempty"`
	// ConfigurationVersion is the version of the runtime's Kyma configuration in the Reconciler. The operation waits until the
	// Reconciler has processed this version.
	ConfigurationVersion int64 `json:"configurationVersion,omitempty"`
	// RuntimeKnown means that the Provisioner has confirmed, after the removal started, that the runtime exists. If the
	// Provisioner later reports the runtime as unknown, the runtime has been removed.
	RuntimeKnown bool `json:"runtimeKnown,omitempty"`
	// UnknownSince is when the Provisioner first reported that it does not know the runtime to remove, or zero.
	UnknownSince time.Time `json:"unknownSince,omitzero"`
	// Update is applied to the instance in the transaction in which the operation succeeds. A suspension has an update if the
	// request also contained other changes.
	Update *Update `json:"change,omitempty"`
	// SubaccountDeleted means that the instance is being deleted because its subaccount was deleted.
	SubaccountDeleted bool `json:"subaccountDeleted,omitempty"`
	// Upgrade is set for operations of one of the UpgradeKinds. Their first step builds Update.
	Upgrade *Upgrade `json:"upgrade,omitempty"`
	// Binding is the binding that the operation creates or removes. It is zero for operations on instances.
	Binding Binding `json:"binding,omitzero"`
}

// dataV1 is Data without its methods, so that MarshalJSON and UnmarshalJSON do not call themselves.
type dataV1 Data

// storedData is the stored form: the fields of dataV1 and the version in one JSON object.
type storedData struct {
	dataV1

	Version int `json:"version,omitempty"`
}

// MarshalJSON returns the stored form in version dataVersion.
func (d Data) MarshalJSON() ([]byte, error) {
	encoded, err := json.Marshal(storedData{Version: dataVersion, dataV1: dataV1(d)})

	return encoded, failure.While(err, "encoding operation data")
}

// UnmarshalJSON reads the stored form. It rejects newer versions, because an older replica would misread the data, run the
// operation, and overwrite the data.
func (d *Data) UnmarshalJSON(encoded []byte) error {
	var stored storedData
	if err := json.Unmarshal(encoded, &stored); err != nil {
		return fmt.Errorf("decoding operation data: %w", err)
	}

	if stored.Version > dataVersion {
		return fmt.Errorf("operation data has version %d, but this release only reads versions up to %d", stored.Version, dataVersion)
	}

	*d = Data(stored.dataV1)

	return nil
}
