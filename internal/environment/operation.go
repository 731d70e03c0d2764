package environment

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/process"
)

// Kinds of operations. They are stored and appear in APIs, so never rename them. The Processes function in broker/service defines
// a process for each kind.
const (
	KindProvision   = "provision"
	KindDeprovision = "deprovision"
	KindUpdate      = "update"
	// KindSuspend removes the runtime but keeps the instance. KindResume creates a new runtime.
	KindSuspend = "suspend"
	KindResume  = "resume"
	// KindUpgradeKyma and KindUpgradeCluster are ordered by operators. Platforms do not see them.
	KindUpgradeKyma    = "upgradeKyma"
	KindUpgradeCluster = "upgradeCluster"
	// KindBind and KindUnbind have a separate queue for each binding, so they run concurrently with the operations on the instance.
	KindBind   = "bind"
	KindUnbind = "unbind"
	// KindCleanup repeats the steps that a deletion or suspension has not completed. Each Leftover has a separate queue.
	KindCleanup = "cleanup"
	// KindOrchestrate starts operations of the UpgradeKinds for many instances. Its InstanceID is the key of an Orchestration.
	KindOrchestrate = "orchestrate"
)

// Kinds lists the kinds of operations on an instance as a whole.
func Kinds() []string { return slices.Concat(PlatformKinds(), UpgradeKinds()) }

// PlatformKinds lists the kinds of operations on an instance that platforms order and poll.
func PlatformKinds() []string {
	return []string{KindProvision, KindDeprovision, KindUpdate, KindSuspend, KindResume}
}

// UpgradeKinds lists the kinds of upgrades. An upgrade ends early if its instance is being deleted or suspended.
func UpgradeKinds() []string { return []string{KindUpgradeKyma, KindUpgradeCluster} }

// The description of an upgrade that has succeeded without changing anything begins with TextDryRun or TextPreempted.
const (
	TextDryRun    = "Dry run, "
	TextPreempted = "Preempted: "
)

// BindingKinds lists the kinds of operations on a binding.
func BindingKinds() []string { return []string{KindBind, KindUnbind} }

// AllKinds lists all kinds of operations.
func AllKinds() []string {
	return slices.Concat(Kinds(), BindingKinds(), []string{KindCleanup, KindOrchestrate})
}

// Retryable reports whether operators can retry an operation of the kind. They start another cleanup instead of retrying one. A bind
// cannot be retried, because the broker removes the binding. They retry an orchestration instead of the operation that conducts it.
func Retryable(kind string) bool {
	return kind != KindCleanup && kind != KindBind && kind != KindOrchestrate
}

// NewOperation returns a new operation on the instance with a random ID. update may be nil. The caller must add the user who
// requested the operation, and store the operation in the same transaction in which it decides to accept the request.
//
// If the operation provisions or resumes the instance, its data contains no copy of the instance, because the instance's row can
// change before the operation starts. The ID of such an operation is also the idempotency key with which it orders the runtime.
func NewOperation(kind string, instance Instance, update *Update, at time.Time) (process.New, error) {
	id := uuid.NewString()

	data := Data{Update: update}
	if kind == KindProvision || kind == KindResume {
		data.Provisioning = id // the first step loads the instance
	} else {
		data.Instance = instance
	}

	return newOperation(process.New{
		ID: id, Kind: kind, InstanceID: instance.ID, Tenant: instance.GlobalAccountID, VisibleTo: VisibleTo(instance), At: at,
	}, data)
}

// OfDeletedSubaccount marks a deletion as caused by the deletion of the instance's subaccount. It returns the changed operation.
func OfDeletedSubaccount(deletion process.New) (process.New, error) {
	var data Data
	if err := json.Unmarshal(deletion.Payload, &data); err != nil {
		return deletion, fmt.Errorf("reading a new operation: %w", err)
	}

	data.SubaccountDeleted = true

	return newOperation(deletion, data)
}

// NewUpgrade returns a new operation of one of the UpgradeKinds with a random ID. Its first step loads the instance.
func NewUpgrade(kind string, instance Instance, upgrade Upgrade, at time.Time) (process.New, error) {
	return newOperation(process.New{
		ID: uuid.NewString(), Kind: kind, InstanceID: instance.ID, Tenant: instance.GlobalAccountID, VisibleTo: VisibleTo(instance), At: at,
	}, Data{Upgrade: &upgrade})
}

// NewBindingOperation returns a new operation with the given ID on a binding of the instance. The data omits the instance's
// request, which can contain secrets and which steps of bindings do not need.
func NewBindingOperation(kind, id string, instance Instance, binding Binding, at time.Time) (process.New, error) {
	instance.Request = Request{}

	return newOperation(process.New{
		ID: id, Kind: kind, InstanceID: BindingKey(binding.InstanceID, binding.BindingID), Tenant: instance.GlobalAccountID,
		VisibleTo: VisibleTo(instance), At: at,
	}, Data{Instance: instance, Binding: binding})
}

// VisibleTo returns the value of process.Record.VisibleTo for an operation on the instance: the names of the platforms that may use
// the instance now. They matter only after the instance is deleted: from then on, only these platforms see the operation. While the
// instance exists, its row determines which platforms see the operation. If the platforms of the instance change, its unfinished
// operations get the new names.
func VisibleTo(instance Instance) string { return strings.Join(instance.Platforms(), " ") }

// newOperation adds the encoded data to an operation. The engine stores the data encrypted.
func newOperation(operation process.New, data Data) (process.New, error) {
	payload, err := json.Marshal(data)
	if err != nil {
		return process.New{}, fmt.Errorf("encoding a new operation: %w", err)
	}

	operation.Description, operation.Payload = "Operation created", payload

	return operation, nil
}
