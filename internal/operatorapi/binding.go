package operatorapi

import "time"

// Binding is access to a runtime that a platform was given. Its credentials are shown to nobody else.
type Binding struct {
	BindingID  string `json:"bindingID"`
	InstanceID string `json:"instanceID"`
	// State is creating, ready, expired, orphaned or deleting. An orphaned one was for a runtime that is gone.
	State string `json:"state"`
	// Role is admin, edit or view.
	Role string `json:"role"`
	// Account is the name of the ServiceAccount in the runtime's namespace kube-system.
	Account string `json:"account"`
	// PredecessorID is the binding that this one replaces.
	PredecessorID string `json:"predecessorID,omitempty"`
	CreatedBy     string `json:"createdBy,omitempty"`
	// OperationID is the operation that makes or made it, later the one that removes it.
	OperationID string    `json:"operationID"`
	CreatedAt   time.Time `json:"createdAt"`
	ExpiresAt   time.Time `json:"expiresAt"`
}

// BindingList are the bindings of an instance, the newest first.
type BindingList struct {
	Data []Binding `json:"data"`
}
