package environment

import (
	"net/url"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Binding is temporary access to the runtime of an instance, with credentials of its own.
type Binding struct {
	// ID is assigned by the broker and never reused: the account in the runtime is named after it. Platforms
	// may reuse a BindingID.
	ID string `json:"id"`
	// InstanceID and BindingID are assigned by the platform and together unique among existing bindings.
	InstanceID string `json:"instanceID"`
	BindingID  string `json:"bindingID"`
	// RuntimeID is the runtime of the account. If the instance has another runtime or none, the binding is
	// useless.
	RuntimeID string `json:"runtimeID"`
	Role      Role   `json:"role"`
	// Lifetime is how long the credentials are valid after they were issued.
	Lifetime time.Duration `json:"lifetime"`
	// Predecessor is the BindingID of the binding that this one replaces, or empty.
	Predecessor string `json:"predecessor,omitempty"`
	// AppGUID is the platform's ID of the bound application, or empty.
	AppGUID string `json:"appGUID,omitempty"`
	// CreatedBy is the user for whom the platform sent the request, or else the authenticated user.
	CreatedBy string       `json:"createdBy,omitempty"`
	State     BindingState `json:"state"`
	// OperationID is the operation that creates the binding, later the one that removes it.
	OperationID string    `json:"operationID"`
	CreatedAt   time.Time `json:"createdAt"`
	// ExpiresAt is when the credentials expire, an estimate until they are issued.
	ExpiresAt time.Time `json:"expiresAt"`

	// Access is returned to the platform. It is never stored with an operation.
	Access Access `json:"-"`
}

// Account is the name of the binding's ServiceAccount in the runtime, and of its ClusterRoleBinding.
func (b Binding) Account() string { return "environment-broker-binding-" + b.ID }

// Shown returns the fields for the audit log.
func (b Binding) Shown() map[string]any {
	return map[string]any{"role": b.Role, "expiresAt": b.ExpiresAt}
}

// Access holds the credentials of a binding. The step that issues them stores them, sealed, in the row of the
// binding.
type Access struct {
	// Kubeconfig contains the token. Reveal it only for the platform.
	Kubeconfig secret.String
	// Server is the URL of the runtime's API server.
	Server string
	// ExpiresAt is when the runtime's API server stops accepting them.
	ExpiresAt time.Time
}

// BindingState is the state of a binding.
type BindingState string

// The states of a binding. A removed one has no row.
const (
	BindingCreating BindingState = "creating"
	BindingReady    BindingState = "ready"
	BindingDeleting BindingState = "deleting"
)

// Role is the role of a binding in the runtime, in all namespaces.
type Role string

// The roles. Each has a ClusterRole of Kubernetes.
const (
	RoleAdmin Role = "admin"
	RoleEdit  Role = "edit"
	RoleView  Role = "view"
)

// ClusterRole returns the name of the role's ClusterRole.
func (r Role) ClusterRole() string {
	if r == RoleAdmin {
		return "cluster-admin"
	}

	return string(r)
}

// BindingPath is part of every binding's key. IDs of instances and bindings must not contain it, or two keys
// could be equal.
const BindingPath = "/service_bindings/"

// BindingKey returns the value that operations on a binding have as InstanceID. Operations with one key run one
// after another, and independently of those of the instance.
func BindingKey(instanceID, bindingID string) string {
	return url.PathEscape(instanceID) + BindingPath + url.PathEscape(bindingID)
}

// BindingOf splits a key made by BindingKey. It returns false for the ID of an instance.
func BindingOf(key string) (instanceID, bindingID string, ok bool) {
	instance, binding, found := strings.Cut(key, BindingPath)
	if !found {
		return "", "", false
	}

	instanceID, instanceErr := url.PathUnescape(instance)
	bindingID, bindingErr := url.PathUnescape(binding)

	return instanceID, bindingID, instanceErr == nil && bindingErr == nil
}
