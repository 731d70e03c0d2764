package auditlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"
)

// Actions other than the kinds of operations: the action of an accepted operation is its kind. Actions are stored and part of the
// API.
const (
	// ActionAccess is a rejected request that would have changed nothing.
	ActionAccess          = "access"
	ActionAdminKubeconfig = "adminkubeconfig"
	ActionCancel          = "cancel"
	ActionRetry           = "retry"
	ActionSkip            = "skip"
	ActionBind            = "bind"
	// ActionCatalog is a change to the catalog files that the broker loaded or rejected.
	ActionCatalog = "catalog"
	ActionExpire  = "expire"
	ActionUnbind  = "unbind"
	ActionUpdate  = "update"
)

// Entry records an accepted change or a rejected request. The fields without a JSON name have columns of their own.
type Entry struct {
	ID string `json:"-"`
	// At is when the broker accepted or rejected the request.
	At     time.Time `json:"-"`
	Action string    `json:"-"`
	// InstanceID and OperationID are empty if the request names no instance or starts no operation.
	InstanceID  string `json:"-"`
	OperationID string `json:"-"`
	// Status is the HTTP status of the response.
	Status int `json:"-"`

	BindingID string `json:"bindingID,omitempty"`
	By        Actor  `json:"by"`
	// Code is the error code of a rejected request. The description of the error may repeat parts of the request and is not
	// stored.
	Code string `json:"code,omitempty"`
	// Reason is the reason that an operator gave, or why the broker acted by itself.
	Reason string `json:"reason,omitempty"`
	// Before and After hold the old and new values of the instance's changed fields, see Difference.
	Before Fields `json:"before,omitempty"`
	After  Fields `json:"after,omitempty"`
	// Missed counts the rejected requests before this one that sampling left out.
	Missed int `json:"missed,omitempty"`
}

// Actor identifies who made a request.
type Actor struct {
	// User is the authenticated name, Means the kind of credentials, such as "token" or "certificate".
	User  string `json:"user,omitempty"`
	Means string `json:"means,omitempty"`
	// Platform and Originator are the names of the platform and of its user, as claimed by the platform. They are not verified.
	Platform   string `json:"platform,omitempty"`
	Originator string `json:"originator,omitempty"`
	// Address is the IP address of the connection.
	Address string `json:"address,omitempty"`
	// RequestID is the request identity that the client sent in a header, or empty.
	RequestID string `json:"requestID,omitempty"`
}

// Name returns the originator of the request: the platform's user if it is known, or else the authenticated user.
func (a Actor) Name() string { return cmp.Or(a.Originator, a.User) }

// Fields are the properties of an object that the audit log may show, by name. Callers list each property explicitly, so that a
// new property with a secret does not appear in the log by accident.
type Fields map[string]any

// Difference returns copies of both sides without the fields that have the same value on both.
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

// Encode returns the JSON of the fields that have no column of their own.
func (e Entry) Encode() (string, error) {
	encoded, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("encoding an audit log entry: %w", err)
	}

	return string(encoded), nil
}

// Decode sets the fields that Encode has written, and keeps the others.
func (e *Entry) Decode(encoded string) error {
	if err := json.Unmarshal([]byte(encoded), e); err != nil {
		return fmt.Errorf("decoding an audit log entry: %w", err)
	}

	return nil
}
