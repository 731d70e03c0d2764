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

// The actions of entries. The action of an accepted operation is the operation's kind, and not in this list. Actions are stored
// and part of the API.
const (
	// ActionAdopt takes over a runtime or an instance from Kyma Provisioner or Kyma Environment Broker.
	ActionAdopt = "adopt"
	// ActionAccess is a rejected request that would have changed nothing.
	ActionAccess          = "access"
	ActionAdminKubeconfig = "adminkubeconfig"
	ActionCancel          = "cancel"
	ActionRetry           = "retry"
	ActionSkip            = "skip"
	ActionBind            = "bind"
	// ActionCatalog is a change to the catalog files that the broker loaded or rejected.
	ActionCatalog = "catalog"
	// ActionCredentials is a response with the credentials of a binding.
	ActionCredentials = "credentials"
	ActionExpire      = "expire"
	// ActionCleanup starts the cleanup of a leftover. ActionConfirm removes a leftover from the list without a cleanup.
	ActionCleanup = "cleanup"
	ActionConfirm = "confirm"
	// ActionOrchestrate records a request for an orchestration. ActionCancel and ActionRetry can also refer to an orchestration. The
	// operation ID of the entry is then the ID of the orchestration.
	ActionOrchestrate = "orchestrate"
	// ActionPlan stores the plan of an orchestration. ActionApply starts the planned orchestration.
	ActionPlan  = "plan"
	ActionApply = "apply"
	// ActionPause and ActionResume stop and continue an orchestration.
	ActionPause  = "pause"
	ActionResume = "resume"
	// ActionRelease frees a dirty account of the account pool. Its entry names the account in Before.
	ActionRelease = "release"
	// ActionRenew requests a renewal of the kubeconfigs that other systems have for a runtime.
	ActionRenew = "renew"
	// ActionErase is an erasure of an account's data. An entry with this action and the status 200 makes the database accept the
	// erasure of other entries.
	ActionErase = "erase"
	// ActionGrant, ActionRevoke and ActionMove change the platforms of an instance.
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
	// ActionRestore restores a row that was lost with a part of the database.
	ActionRestore = "restore"
	ActionUnbind  = "unbind"
	ActionUpdate  = "update"
	// ActionWebhook changes or tests a webhook. The operation ID of its entry is the ID of the webhook, and After describes the change.
	ActionWebhook = "webhook"
)

// CodeOtherPlatform is the code of rejected requests for an instance that belongs to another platform. The code in the response is
// different or missing, so that the response does not reveal the instance.
const CodeOtherPlatform = "OtherPlatform"

// Entry records an accepted change or a rejected request. Fields without a JSON name have separate columns.
type Entry struct {
	ID string `json:"-"`
	// At is when the service accepted or rejected the request.
	At     time.Time `json:"-"`
	Action string    `json:"-"`
	// InstanceID is empty if the request names no instance. OperationID is empty if the request starts no operation.
	InstanceID  string `json:"-"`
	OperationID string `json:"-"`
	// Status is the HTTP status of the response.
	Status int `json:"-"`
	// Account is the ID of the account if neither InstanceID nor OperationID identifies the account.
	Account string `json:"-"`
	// ErasedBy is the entry ID of the erasure that removed this entry's data, or empty. Only List sets it.
	ErasedBy string `json:"-"`

	BindingID string `json:"bindingID,omitempty"`
	By        Actor  `json:"by"`
	// Code is the error code of a rejected request. The error description is not stored, because it may repeat parts of the
	// request.
	Code string `json:"code,omitempty"`
	// Reason is the reason that an operator gave, or the reason why the service itself made the change.
	Reason string `json:"reason,omitempty"`
	// Before and After contain the old and new values of the instance's changed fields, see Difference.
	Before Fields `json:"before,omitempty"`
	After  Fields `json:"after,omitempty"`
	// Missed is the number of earlier rejected requests that have no entry because of sampling.
	Missed int `json:"missed,omitempty"`
}

// Actor identifies who made a request.
type Actor struct {
	// User is the authenticated name. Means is the kind of credentials, such as "token" or "certificate".
	User  string `json:"user,omitempty"`
	Means string `json:"means,omitempty"`
	// Platform is the name of the platform, and Originator is the name of its user, both as claimed by the platform. They are
	// not verified.
	Platform   string `json:"platform,omitempty"`
	Originator string `json:"originator,omitempty"`
	// Address is the IP address of the connection.
	Address string `json:"address,omitempty"`
	// RequestID is the request identity that the client sent in a header, or empty.
	RequestID string `json:"requestID,omitempty"`
}

// Name returns who originated the request: the platform's user if known, or else the authenticated user.
func (a Actor) Name() string { return cut(cmp.Or(a.Originator, a.User), maxText) }

// Fields are the properties of an object that the audit log may show, by name. Callers list each property explicitly, so that a
// new property with a secret does not reach the log by accident.
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

// Encode returns the JSON of the fields that have no separate column, within the limits that bounded enforces.
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

// Decode sets the fields that Encode has written. It does not change the other fields.
func (e *Entry) Decode(encoded string) error {
	return failure.While(json.Unmarshal([]byte(encoded), e), "decoding an audit log entry")
}
