package auditlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// The actions of entries. The action of an accepted operation is the kind of the operation, which is not listed here. Actions are
// stored in the database and are part of the API, so they must not change.
const (
	// ActionAdopt takes over a runtime or an instance from Kyma Provisioner or Kyma Environment Broker.
	ActionAdopt = "adopt"
	// ActionAccess is a rejected request that would only have read data.
	ActionAccess          = "access"
	ActionAdminKubeconfig = "adminkubeconfig"
	ActionCancel          = "cancel"
	ActionRetry           = "retry"
	ActionSkip            = "skip"
	ActionBind            = "bind"
	// ActionCatalog is a change to the catalog files, which the broker has loaded or rejected.
	ActionCatalog = "catalog"
	// ActionCredentials is a response that contains the credentials of a binding.
	ActionCredentials = "credentials"
	ActionExpire      = "expire"
	// ActionCleanup starts the cleanup of a leftover. ActionConfirm removes a leftover from the list without running a cleanup.
	ActionCleanup = "cleanup"
	ActionConfirm = "confirm"
	// ActionOrchestrate starts an orchestration. ActionCancel and ActionRetry can refer to an operation or to an orchestration. For
	// orchestrations, the operation ID of the entry is the ID of the orchestration.
	ActionOrchestrate = "orchestrate"
	// ActionPlan stores the plan of an orchestration. ActionApply starts the planned orchestration.
	ActionPlan  = "plan"
	ActionApply = "apply"
	// ActionPause stops an orchestration until ActionResume continues it.
	ActionPause  = "pause"
	ActionResume = "resume"
	// ActionRelease makes a dirty account of the account pool available again. The entry names the account in Before.
	ActionRelease = "release"
	// ActionRenew requests new kubeconfigs for the other systems that have a kubeconfig of a runtime.
	ActionRenew = "renew"
	// ActionErase is an erasure of an account's data. The database accepts the erasure of other entries only if an entry with this
	// action and the status 200 exists.
	ActionErase = "erase"
	// ActionGrant, ActionRevoke and ActionMove change which platforms may use an instance and which one owns it.
	ActionGrant  = "grant"
	ActionRevoke = "revoke"
	ActionMove   = "move"
	// ActionLabel changes the labels of an instance.
	ActionLabel = "label"
	// ActionLogin and ActionLogout start and end a session of the console.
	ActionLogin  = "login"
	ActionLogout = "logout"
	// ActionProtect and ActionUnprotect change the deletion protection of an instance.
	ActionProtect   = "protect"
	ActionUnprotect = "unprotect"
	// ActionRestore restores a row that was lost together with a part of the database.
	ActionRestore = "restore"
	ActionUnbind  = "unbind"
	ActionUpdate  = "update"
	// ActionWebhook changes or tests a webhook. The operation ID of the entry is the ID of the webhook, and After describes the
	// change.
	ActionWebhook = "webhook"
)

// CodeOtherPlatform is the code in the entries of rejected requests for an instance that belongs to another platform. The response
// has a different code or none, so that it does not reveal that the instance exists.
const CodeOtherPlatform = "OtherPlatform"

// Entry records an accepted change or a rejected request. Fields that are not encoded as JSON have their own columns.
type Entry struct {
	ID string `json:"-"`
	// At is when the service accepted or rejected the request.
	At     time.Time `json:"-"`
	Action string    `json:"-"`
	// InstanceID is empty if the request does not concern an instance. OperationID is empty if the request has not started an
	// operation.
	InstanceID  string `json:"-"`
	OperationID string `json:"-"`
	// Status is the HTTP status of the response.
	Status int `json:"-"`
	// Account is the ID of the account. It is empty if InstanceID or OperationID identifies the account.
	Account string `json:"-"`
	// ErasedBy is the ID of the entry about the erasure that removed the data of this entry. It is empty if the data was not erased.
	// Only List sets it.
	ErasedBy string `json:"-"`

	BindingID string `json:"bindingID,omitempty"`
	By        Actor  `json:"by"`
	// Code is the error code of a rejected request. The description of the error is not stored, because it may contain parts of the
	// request.
	Code string `json:"code,omitempty"`
	// Reason is the reason that an operator stated for the change, or the reason for a change that the service itself has made.
	Reason string `json:"reason,omitempty"`
	// Before and After contain the old and new values of the instance's changed fields, see Difference.
	Before Fields `json:"before,omitempty"`
	After  Fields `json:"after,omitempty"`
	// Missed is the number of rejected requests before this one that have no entry, because only a sample of them is recorded.
	Missed int `json:"missed,omitempty"`
}

// Actor identifies who made a request.
type Actor struct {
	// User is the authenticated name of the user. Means is the kind of credentials, such as "token" or "certificate".
	User  string `json:"user,omitempty"`
	Means string `json:"means,omitempty"`
	// Platform is the name of the platform, and Originator is the name of the platform's user. The platform has sent both, and they
	// are not verified.
	Platform   string `json:"platform,omitempty"`
	Originator string `json:"originator,omitempty"`
	// Address is the IP address from which the connection came.
	Address string `json:"address,omitempty"`
	// RequestID is the request identity that the client sent in a header. It is empty if there was none.
	RequestID string `json:"requestID,omitempty"`
}

// Name returns the name of the person or program that made the request: the platform's user if known, and otherwise the
// authenticated user.
func (a Actor) Name() string { return cut(cmp.Or(a.Originator, a.User), maxText) }

// Fields maps the names of those properties of an object that the audit log may show to their values. Callers list each property
// explicitly, so that a new property with a secret does not reach the log by accident.
type Fields map[string]any

// Difference returns copies of both arguments without the fields that have the same value in both.
func Difference(before, after Fields) (Fields, Fields) {
	before, after = maps.Clone(before), maps.Clone(after)

	for name, value := range before {
		if other, both := after[name]; both && reflect.DeepEqual(value, other) {
			delete(before, name)
			delete(after, name)
		}
	}

	return before, after
}

// Encode returns the JSON of the fields that have no column of their own, within the limits that bounded enforces.
func (e Entry) Encode() (string, error) {
	encoded, err := json.Marshal(e)
	if err == nil && len(encoded) > maxText { // a shorter entry is within all limits
		encoded, err = json.Marshal(e.bounded())
	}

	if err != nil {
		return "", fmt.Errorf("encoding an audit log entry: %w", err)
	}

	return string(encoded), nil
}

// Decode sets the fields that Encode wrote. It does not change the other fields.
func (e *Entry) Decode(encoded string) error {
	return failure.While(json.Unmarshal([]byte(encoded), e), "decoding an audit log entry")
}
