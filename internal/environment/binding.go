package environment

import (
	"net/url"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Binding grants temporary access to an instance's runtime, with credentials of its own.
type Binding struct {
	// ID is assigned by the broker and never reused, because the ServiceAccount in the runtime is named after it. A platform, in
	// contrast, can reuse a BindingID.
	ID string `db:"id" json:"id"`
	// InstanceID and BindingID are assigned by the platform. No two existing bindings have the same combination.
	InstanceID string `db:"instance_id" json:"instanceID"`
	BindingID  string `db:"binding_id"  json:"bindingID"`
	// RuntimeID is the ID of the runtime that contains the ServiceAccount. If the instance no longer has this runtime, the binding
	// does not work.
	RuntimeID string `db:"runtime_id" json:"runtimeID"`
	Role      Role   `db:"role"       json:"role"`
	// Lifetime is how long the credentials are valid after they are issued.
	Lifetime time.Duration `db:"-" json:"lifetime"`
	// Predecessor is the BindingID of the binding that this one replaces, or empty.
	Predecessor string `db:"predecessor" json:"predecessor,omitempty"`
	// AppGUID is the platform's ID of the bound application, or empty.
	AppGUID string `db:"app_guid" json:"appGUID,omitempty"`
	// CreatedBy is the user on whose behalf the platform sent the request, or the authenticated user if the platform names none.
	CreatedBy string       `db:"created_by" json:"createdBy,omitempty"`
	State     BindingState `db:"state"      json:"state"`
	// OperationID is the ID of the operation that created the binding or, once its removal has been ordered, of the operation
	// that removes it.
	OperationID string    `db:"operation_id" json:"operationID"`
	CreatedAt   time.Time `db:"-"            json:"createdAt"`
	// ExpiresAt is when the credentials expire. Before they are issued, it is an estimate.
	ExpiresAt time.Time `db:"-" json:"expiresAt"`

	// Access contains the credentials, which are returned to the platform. They are never stored with an operation.
	Access Access `db:"-" json:"-"`
}

// Account returns the name of the binding's ServiceAccount and ClusterRoleBinding in the runtime.
func (b Binding) Account() string { return "environment-broker-binding-" + b.ID }

// Shown returns the fields of the binding that are written to the audit log.
func (b Binding) Shown() map[string]any {
	return map[string]any{"role": b.Role, "expiresAt": b.ExpiresAt}
}

// Access contains a binding's credentials. They are encrypted and stored in the binding's row when the creation of the binding
// succeeds.
type Access struct {
	// Kubeconfig contains the token. Only a response to the platform may reveal it.
	Kubeconfig secret.String
	// Server is the URL of the runtime's API server.
	Server string
	// ExpiresAt is when the runtime's API server stops accepting the credentials.
	ExpiresAt time.Time
}

// BindingState is the progress of a binding's creation or removal.
type BindingState string

// Binding states. A removed binding has no row, and therefore no state.
const (
	BindingCreating BindingState = "creating"
	BindingReady    BindingState = "ready"
	BindingDeleting BindingState = "deleting"
)

// Role is the role that a binding grants in all namespaces of the runtime.
type Role string

// Binding roles. Each corresponds to a built-in ClusterRole of Kubernetes.
const (
	RoleAdmin Role = "admin"
	RoleEdit  Role = "edit"
	RoleView  Role = "view"
)

// ClusterRole returns the name of the ClusterRole that corresponds to the role.
func (r Role) ClusterRole() string {
	if r == RoleAdmin {
		return "cluster-admin"
	}

	return string(r)
}

// BindingPath separates the two IDs in the key of a binding. The broker rejects IDs that contain BindingPath, because BindingOf
// would mistake such an instance ID for a binding key.
const BindingPath = "/service_bindings/"

// BindingKey returns the key of a binding, which is the InstanceID of the operations on the binding. Operations with the same key
// run one after another, independently of the operations on the instance.
func BindingKey(instanceID, bindingID string) string {
	return url.PathEscape(instanceID) + BindingPath + url.PathEscape(bindingID)
}

// BindingOf returns the two IDs in a key that BindingKey returned. It returns false if key is an instance ID instead.
func BindingOf(key string) (instanceID, bindingID string, ok bool) {
	instance, binding, found := strings.Cut(key, BindingPath)
	if !found {
		return "", "", false
	}

	instanceID, instanceErr := url.PathUnescape(instance)
	bindingID, bindingErr := url.PathUnescape(binding)

	return instanceID, bindingID, instanceErr == nil && bindingErr == nil
}
