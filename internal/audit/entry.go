package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"
)

// The actions that are no kinds of operations. An operation's action is its kind.
const (
	// Access is a request that changes nothing and was not let in.
	Access          = "access"
	AdminKubeconfig = "adminkubeconfig"
	Cancel          = "cancel"
	Retry           = "retry"
	Skip            = "skip"
	Bind            = "bind"
	// Catalog is a change of the catalog's files, which the broker found and took or did not take.
	Catalog = "catalog"
	Expire  = "expire"
	Unbind  = "unbind"
	Update  = "update"
)

// Entry is something that somebody did, or tried to do.
type Entry struct {
	ID string `json:"-"`
	// At is when it was accepted or refused.
	At          time.Time `json:"-"`
	Action      string    `json:"-"`
	InstanceID  string    `json:"-"`
	OperationID string    `json:"-"`
	// Status is that of the answer.
	Status int `json:"-"`

	BindingID string `json:"bindingID,omitempty"`
	By        Actor  `json:"by"`
	// Code is the word for machines in the answer, where it is no success. Its text may repeat what was sent, and is not kept.
	Code string `json:"code,omitempty"`
	// Reason is what an operator gave as one; of what the broker did by itself, why.
	Reason string `json:"reason,omitempty"`
	Before Fields `json:"before,omitempty"`
	After  Fields `json:"after,omitempty"`
	// Missed counts refusals before this one that are not in the trail, because there were too many.
	Missed int `json:"missed,omitempty"`
}

// Fields are what may be told of a thing, by name. Whoever makes them lists what is told: what nobody thought of stays hidden.
type Fields map[string]any

// Difference leaves out of both what is the same in them.
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

// Encode returns what is kept of the entry beside its columns.
func (e Entry) Encode() (string, error) {
	encoded, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("encoding an entry of the audit trail: %w", err)
	}

	return string(encoded), nil
}

// Decode sets what Encode has kept.
func (e *Entry) Decode(encoded string) error {
	if err := json.Unmarshal([]byte(encoded), e); err != nil {
		return fmt.Errorf("decoding an entry of the audit trail: %w", err)
	}

	return nil
}
