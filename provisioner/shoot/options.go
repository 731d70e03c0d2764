package shoot

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Runtime is what is ordered and to whom it belongs.
type Runtime struct {
	ID          string
	OperationID string
	// Tenant and SubAccount have to fit into labels.
	Tenant     string
	SubAccount string
	Config     *spec.Cluster
}

// Options are what all Shoots of a landscape have in common.
type Options struct {
	// Namespace is the Gardener project's.
	Namespace string
	// AuditPolicyConfigMap names a ConfigMap in the namespace; without a name Shoots have no audit policy.
	AuditPolicyConfigMap string
	// AuditLogTenant is the account to which the landscape's own audit logging ascribes all Shoots, or empty.
	AuditLogTenant string
	// AuditLogs are where the extension for audit logs sends them. Shoots that it has no place for are made without the extension.
	AuditLogs AuditLogs
	// AutoUpdateKubernetes, AutoUpdateMachineImage and RequireIMDSv2 (AWS only) decide where an order does not.
	AutoUpdateKubernetes   bool
	AutoUpdateMachineImage bool
	RequireIMDSv2          bool
	// MaintenanceWindows are when Gardener may touch Shoots for production, by region. Without one Gardener chooses.
	MaintenanceWindows map[string]gardencorev1beta1.MaintenanceTimeWindow
	// Extensions are the types of the extensions that every Shoot gets. They have to be registered in the landscape.
	Extensions []string
}
