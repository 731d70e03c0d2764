package auditlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"
)

// The actions that are not kinds of operations. The action of an operation is its kind.
const (
	// ActionAccess is a rejected request that would have changed nothing.
	ActionAccess          = "access"
	ActionAdminKubeconfig = "adminkubeconfig"
	ActionCancel          = "cancel"
	ActionRetry           = "retry"
	ActionSkip            = "skip"
	ActionBind            = "bind"
	// ActionCatalog is a change of the catalog's files that the broker loaded or rejected.
	ActionCatalog = "catalog"
	ActionExpire  = "expire"
	ActionUnbind  = "unbind"
	ActionUpdate  = "update"
)

// Entry records something that somebody did, or was refused. The fields without a JSON name have columns of their own.
type Entry struct {
	ID string `json:"-"`
	// At is the time of the acceptance or the refusal.
	At          time.Time `json:"-"`
	Action      string    `json:"-"`
	InstanceID  string    `json:"-"`
	OperationID string    `json:"-"`
	// Status is the HTTP status of the response.
	Status int `json:"-"`

	BindingID string `json:"bindingID,omitempty"`
	By        Actor  `json:"by"`
	// Code is the error code of a refusal. Its description may repeat parts of the request and is not stored.
	Code string `json:"code,omitempty"`
	// Reason is the reason that an operator gave, or why the broker acted by itself.
	Reason string `json:"reason,omitempty"`
	Before Fields `json:"before,omitempty"`
	After  Fields `json:"after,omitempty"`
	// Missed counts the refusals before this one that sampling left out.
	Missed int `json:"missed,omitempty"`
}

// Actor identifies who made a request.
type Actor struct {
	// User is the authenticated name, Means the kind of credentials.
	User  string `json:"user,omitempty"`
	Means string `json:"means,omitempty"`
	// Platform and Originator are claims of the platform: its name, and its user.
	Platform   string `json:"platform,omitempty"`
	Originator string `json:"originator,omitempty"`
	// Address is the IP address of the connection.
	Address string `json:"address,omitempty"`
	// RequestID is the request identity that the client sent.
	RequestID string `json:"requestID,omitempty"`
}

// Name returns on whose behalf the request was made: the platform's user, or else the authenticated user.
func (a Actor) Name() string { return cmp.Or(a.Originator, a.User) }

// Fields are the properties of an object that the audit log may show, by name. Callers list them one by one, so a property that nobody
// considered stays hidden.
type Fields map[string]any

// Difference returns both sides without the fields that they share. It does not change its arguments.
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

// Encode returns the JSON of the fields without a column.
func (e Entry) Encode() (string, error) {
	encoded, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("encoding an audit log entry: %w", err)
	}

	return string(encoded), nil
}

// Decode sets the fields that Encode has written.
func (e *Entry) Decode(encoded string) error {
	if err := json.Unmarshal([]byte(encoded), e); err != nil {
		return fmt.Errorf("decoding an audit log entry: %w", err)
	}

	return nil
}
