package environment

import (
	"cmp"
	"encoding/json"
	"time"
)

// Instance is a service instance. Its JSON form is stored with operations.
//
// The row of an instance contains its current state. It changes when an operation succeeds, or immediately if the change needs no
// operation. Steps work on the copy in Data, which was made when the operation was accepted.
type Instance struct {
	// ID is assigned by the platform. After an instance is deleted, its ID can be used again.
	ID string `json:"id" db:"id"`
	// ServiceID and PlanID are the IDs in the catalog. PlanName is the name of the plan.
	ServiceID string `json:"serviceID" db:"service_id"`
	PlanID    string `json:"planID" db:"plan_id"`
	PlanName  string `json:"planName" db:"plan_name"`
	// GlobalAccountID is the ID of the tenant. SubAccountID is the ID of the tenant's subaccount that ordered the instance.
	GlobalAccountID string `json:"globalAccountID" db:"global_account_id"`
	SubAccountID    string `json:"subAccountID" db:"subaccount_id"`
	// SubscriptionAccountID is the ID of the tenant that ordered the instance. It is empty unless the instance was moved to another
	// tenant.
	SubscriptionAccountID string `json:"subscriptionAccountID,omitempty" db:"subscription_account_id"`
	// PlatformRegion is the region in the path of the order, or the default region.
	PlatformRegion string `json:"platformRegion" db:"platform_region"`
	// Provider is aws, azure, gcp or openstack. Region is the provider's name for the region of the runtime. Both are empty for
	// clusters that the tenant provides.
	Provider string `json:"provider" db:"provider"`
	Region   string `json:"region" db:"region"`
	// Name is the display name of the runtime. ShootName is the name of its Shoot in Gardener.
	Name      string `json:"name" db:"name"`
	ShootName string `json:"shootName" db:"shoot_name"`
	// RuntimeID is the Provisioner's ID of the runtime. It is empty before the runtime is ordered and after it is removed.
	RuntimeID string `json:"runtimeID" db:"runtime_id"`
	// DashboardURL is the URL of the console for users, or empty if there is no console.
	DashboardURL string `json:"dashboardURL" db:"dashboard_url"`
	// MaintenanceVersion is the maintenance version of the plan that the runtime has. It is empty for instances from before
	// maintenance versions were introduced.
	MaintenanceVersion string `json:"maintenanceVersion,omitempty" db:"maintenance_version"`
	// Suspended reports that the runtime was removed but the instance was kept.
	Suspended bool `json:"suspended,omitempty" db:"suspended"`
	// ExpiresAt is when the instance will expire, or zero if it never expires. ExpiredAt is when it has expired; after that it can
	// only be deleted.
	ExpiresAt time.Time `json:"expiresAt,omitzero" db:"-"`
	ExpiredAt time.Time `json:"expiredAt,omitzero" db:"-"`
	// Exclusive is a value that only one instance can have at a time, or empty. The database enforces this.
	Exclusive string `json:"exclusive,omitempty" db:"-"`
	// Request is zero in instances that were read for a list, because lists do not decrypt it.
	Request   Request   `json:"request,omitzero" db:"-"`
	CreatedAt time.Time `json:"createdAt" db:"-"`
	UpdatedAt time.Time `json:"updatedAt" db:"-"`
}

// RuntimeTenant returns the tenant under which the Provisioner stores the runtime: the account that ordered the instance. The
// runtime uses the credentials of this account even if the instance was moved to another account.
func (i Instance) RuntimeTenant() string { return cmp.Or(i.SubscriptionAccountID, i.GlobalAccountID) }

// ClusterName returns the display name of the cluster. This is the ShootName, except for clusters that the tenant provides: these
// have the name that the tenant chose, if any. Such instances also have a generated ShootName, but only because the column must
// be unique. Without Request, the name of a cluster that the tenant provides is unknown, and ClusterName returns an empty string.
func (i Instance) ClusterName() string {
	switch {
	case i.Request.Cluster.Own != nil:
		return i.Request.Cluster.Own.ShootName
	case i.Provider == "":
		return ""
	default:
		return i.ShootName
	}
}

// Expired reports whether the instance has expired and can only be deleted.
func (i Instance) Expired() bool { return !i.ExpiredAt.IsZero() }

// Shown returns the fields for the audit log, with their names in audit entries. It omits the raw request, which can contain
// credentials. When you add a field to Cluster that users can change, add it here too.
func (i Instance) Shown() map[string]any {
	cluster := i.Request.Cluster

	return map[string]any{
		"plan":              i.PlanName,
		"name":              i.Name,
		"globalAccountID":   i.GlobalAccountID,
		"subAccountID":      i.SubAccountID,
		"platformRegion":    i.PlatformRegion,
		"provider":          i.Provider,
		"region":            i.Region,
		"shootName":         i.ClusterName(),
		"kubernetesVersion": cluster.KubernetesVersion,
		"machineType":       cluster.MachineType,
		"volumeType":        cluster.VolumeType,
		"volumeSizeGB":      cluster.VolumeSizeGB,
		"autoScalerMin":     cluster.AutoScalerMin,
		"autoScalerMax":     cluster.AutoScalerMax,
		"maxSurge":          cluster.MaxSurge,
		"maxUnavailable":    cluster.MaxUnavailable,
		"zones":             cluster.Zones,
		"administrators":    cluster.Administrators,
		"oidc":              cluster.OIDC,
		"purpose":           cluster.Purpose,

		"maintenanceVersion": i.MaintenanceVersion,
	}
}

// Request contains the platform's request and the resulting cluster. It can contain credentials and is encrypted in the database.
type Request struct {
	// OrganizationGUID and SpaceGUID are the Cloud Foundry organization and space. Other platforms may omit them.
	OrganizationGUID string `json:"organization_guid,omitempty"`
	SpaceGUID        string `json:"space_guid,omitempty"`
	// Context and Parameters are stored as the platform sent them. Updates replace individual fields.
	Context    json.RawMessage `json:"context,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Initial contains the original order if an update has changed it, otherwise nil. It is used to detect repeated orders.
	Initial *InitialOrder `json:"order,omitempty"`
	// User is the user who ordered the instance. This user also administers the runtime, unless the parameters name administrators.
	User string `json:"user,omitempty"`
	// Cluster is derived from the parameters and the defaults of the plan.
	Cluster Cluster `json:"cluster"`
}

// InitialOrder contains the fields of an order that updates can change. If a platform repeats the order after an update, the
// broker compares the order with these values to decide whether it is the same.
type InitialOrder struct {
	PlanID     string          `json:"plan_id"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}
