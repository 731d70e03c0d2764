package environment

import (
	"encoding/json"
	"fmt"
	"time"
)

// dataVersion is the version of the stored form that this code writes. Rows without a version have version 1.
//
// New optional fields need no new version. A change that makes older replicas misread a row does: then
// UnmarshalJSON converts older forms, and the release before the one that writes the new version must already
// read it, because both run side by side during an update.
const dataVersion = 1

// Data is shared by the steps of an operation. The engine stores it with the operation, sealed, after each
// step. A step that runs again after a crash finds the data of the last stored step, so it must not rely on
// changes of its own first attempt.
type Data struct {
	// Instance is the instance when the operation was accepted, later as the operation has changed it.
	Instance Instance
	// TargetSecret names the credentials of the infrastructure in Gardener. EarlierSecrets are the target
	// secrets of the operations that this one retries, if the configuration has changed since: the Provisioner may have an order
	// with one of them.
	TargetSecret   string
	EarlierSecrets []string
	// Provisioning is the ID of the operation that ordered the runtime, which is the order's idempotency key.
	Provisioning string
	// Ordered is the intent: it is stored before the order is sent for the first time, so that no crash leaves
	// an unknown runtime.
	Ordered bool
	// ProvisionerOperationID is the operation of the Provisioner that this one waits for.
	ProvisionerOperationID string
	// RuntimeKnown reports that the Provisioner has shown, since the start of a removal, that it knows the runtime. From then on the
	// runtime is gone when the Provisioner no longer knows it.
	RuntimeKnown bool
	// UnknownSince is when the Provisioner first answered that it does not know the runtime to remove, or zero.
	UnknownSince time.Time
	// Update is applied to the instance once the operation has succeeded. Suspensions have one if other changes
	// came with them.
	Update *Update
	// Binding is the binding that the operation creates or removes, zero for operations on instances.
	Binding Binding
}

// dataV1 has the fields of Data under their stored names. Instance, Update and Binding are stored as they are.
type dataV1 struct {
	Instance               Instance  `json:"instance,omitzero"`
	TargetSecret           string    `json:"targetSecret,omitempty"`
	EarlierSecrets         []string  `json:"earlierSecrets,omitempty"`
	Provisioning           string    `json:"provisioning,omitempty"`
	Ordered                bool      `json:"ordered,omitempty"`
	ProvisionerOperationID string    `json:"provisionerOperationID,omitempty"`
	RuntimeKnown           bool      `json:"runtimeKnown,omitempty"`
	UnknownSince           time.Time `json:"unknownSince,omitzero"`
	Update                 *Update   `json:"change,omitempty"`
	Binding                Binding   `json:"binding,omitzero"`
}

// storedData is the stored form: the fields of dataV1 and the version, in one JSON object.
type storedData struct {
	dataV1

	Version int `json:"version,omitempty"`
}

// MarshalJSON returns the stored form, in version dataVersion.
func (d Data) MarshalJSON() ([]byte, error) {
	encoded, err := json.Marshal(storedData{Version: dataVersion, dataV1: dataV1(d)})
	if err != nil {
		return nil, fmt.Errorf("encoding operation data: %w", err)
	}

	return encoded, nil
}

// UnmarshalJSON reads the stored form. It rejects versions that this code does not know: an older replica must
// not run, and then overwrite, an operation whose data it would misread.
func (d *Data) UnmarshalJSON(encoded []byte) error {
	var stored storedData
	if err := json.Unmarshal(encoded, &stored); err != nil {
		return fmt.Errorf("decoding operation data: %w", err)
	}

	if stored.Version > dataVersion {
		return fmt.Errorf("operation data has version %d, this release reads versions up to %d", stored.Version, dataVersion)
	}

	*d = Data(stored.dataV1)

	return nil
}
