package environment

import (
	"net/url"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Binding is access to the runtime of an instance for a while, with credentials of its own.
type Binding struct {
	// ID is the broker's own and used once: the account in the runtime is named by it. A platform may use its BindingID again.
	ID         string `json:"id"`
	InstanceID string `json:"instanceID"`
	BindingID  string `json:"bindingID"`
	// RuntimeID is the runtime that the account is in. When the instance has another one, or none, the binding is of no use any more.
	RuntimeID string `json:"runtimeID"`
	Role      Role   `json:"role"`
	// Lifetime is how long the credentials are good for, from when they are made.
	Lifetime time.Duration `json:"lifetime"`
	// Predecessor is the BindingID of the binding that this one replaces, or empty.
	Predecessor string `json:"predecessor,omitempty"`
	// AppGUID is the application that it is for, as the platform says, or empty.
	AppGUID   string       `json:"appGUID,omitempty"`
	CreatedBy string       `json:"createdBy,omitempty"`
	State     BindingState `json:"state"`
	// OperationID is the operation that makes it, later the one that removes it.
	OperationID string    `json:"operationID"`
	CreatedAt   time.Time `json:"createdAt"`
	// ExpiresAt is when the credentials end. Until they are made it is an estimate.
	ExpiresAt time.Time `json:"expiresAt"`

	// Access is what the platform gets. It never goes into the data of an operation.
	Access Access `json:"-"`
}

// Account is the name of the binding's account in the runtime, and of what binds that to its role.
func (b Binding) Account() string { return "environment-broker-binding-" + b.ID }

// Access are the credentials of a binding.
type Access struct {
	Kubeconfig secret.String
	// Server is the URL of the runtime's API server.
	Server string
	// ExpiresAt is when the runtime refuses them by itself.
	ExpiresAt time.Time
}

// BindingState is where a binding stands.
type BindingState string

// The states of a binding. One that was removed is no more.
const (
	BindingCreating BindingState = "creating"
	BindingReady    BindingState = "ready"
	BindingDeleting BindingState = "deleting"
)

// Role is what the holder of a binding may do in the runtime.
type Role string

// The roles, each with its own ClusterRole of Kubernetes.
const (
	RoleAdmin Role = "admin"
	RoleEdit  Role = "edit"
	RoleView  Role = "view"
)

// ClusterRole is the role's name in every cluster.
func (r Role) ClusterRole() string {
	if r == RoleAdmin {
		return "cluster-admin"
	}

	return string(r)
}

// BindingPath is in the key of every binding, and may be in no id.
const BindingPath = "/service_bindings/"

// BindingKey is what the operations of a binding work on: they run one after the other, and beside those of the instance.
func BindingKey(instanceID, bindingID string) string {
	return url.PathEscape(instanceID) + BindingPath + url.PathEscape(bindingID)
}

// BindingOf returns what BindingKey was made of, and false for what is no such key.
func BindingOf(key string) (instanceID, bindingID string, is bool) {
	instance, binding, found := strings.Cut(key, BindingPath)
	if !found {
		return "", "", false
	}

	instanceID, instanceErr := url.PathUnescape(instance)
	bindingID, bindingErr := url.PathUnescape(binding)

	return instanceID, bindingID, instanceErr == nil && bindingErr == nil
}
