package environment

import (
	"cmp"
	"encoding/json"
	"time"
)

// Instance is a service instance. Its JSON names are stored with operations.
//
// The row of an instance holds its current state: it changes when an operation succeeds, or at once if no
// operation is needed. Steps work on the copy in Data, which is as old as the operation.
type Instance struct {
	// ID is assigned by the platform. A deleted instance's ID may be used again.
	ID string `json:"id"`
	// ServiceID and PlanID are the public IDs in the catalog; PlanName is the name that belongs to PlanID.
	ServiceID string `json:"serviceID"`
	PlanID    string `json:"planID"`
	PlanName  string `json:"planName"`
	// GlobalAccountID is the tenant. SubAccountID is the part of the tenant that ordered the instance.
	GlobalAccountID string `json:"globalAccountID"`
	SubAccountID    string `json:"subAccountID"`
	// SubscriptionAccountID is the tenant that ordered the instance, empty unless the instance has moved to
	// another tenant since.
	SubscriptionAccountID string `json:"subscriptionAccountID,omitempty"`
	// PlatformRegion is the region in the path of the order, or the default one.
	PlatformRegion string `json:"platformRegion"`
	// Provider is aws, azure, gcp or openstack; Region is the provider's name of the runtime's region. Both are
	// empty for clusters that the tenant brings.
	Provider string `json:"provider"`
	Region   string `json:"region"`
	// Name is the runtime's name for people, ShootName the name of its Shoot in Gardener.
	Name      string `json:"name"`
	ShootName string `json:"shootName"`
	// RuntimeID is the Provisioner's ID of the runtime, empty until the runtime has been ordered and after it
	// was removed.
	RuntimeID string `json:"runtimeID"`
	// DashboardURL is the console for users, empty if the broker has none.
	DashboardURL string `json:"dashboardURL"`
	// MaintenanceVersion is the version of the plan that the runtime has, empty for instances older than
	// versions.
	MaintenanceVersion string `json:"maintenanceVersion,omitempty"`
	// Suspended reports that the runtime was removed and the instance kept.
	Suspended bool `json:"suspended,omitempty"`
	// ExpiresAt is when the instance expires, zero for never. ExpiredAt is when it did: from then on it can
	// only be deleted.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	ExpiredAt time.Time `json:"expiredAt,omitzero"`
	// Exclusive is a value that no other instance has at the same time, or empty. The database enforces it.
	Exclusive string `json:"exclusive,omitempty"`
	// Request is zero in instances that were read for a list, because lists do not decrypt it.
	Request   Request   `json:"request,omitzero"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// RuntimeTenant returns the tenant under which the Provisioner knows the runtime: the account that ordered the
// instance. The runtime has the credentials of that account even if the instance has moved to another one.
func (i Instance) RuntimeTenant() string { return cmp.Or(i.SubscriptionAccountID, i.GlobalAccountID) }

// ClusterName returns the name of the cluster for people: for a tenant's own cluster the name that the tenant gave, if any, else
// the name of the Shoot. An own cluster has a ShootName of its own only because the column is unique. Without the request, the
// name of an own cluster is unknown and empty.
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

// Expired reports whether the instance can only be deleted.
func (i Instance) Expired() bool { return !i.ExpiredAt.IsZero() }

// Shown returns the fields for the audit log, under the names that audit entries have. The raw request is not
// among them, because it may hold credentials. A new field of Cluster that users can change belongs here.
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

// Request holds the platform's request and the cluster that it resolves to. It may hold credentials and is
// sealed in the database.
type Request struct {
	// OrganizationGUID and SpaceGUID are those of Cloud Foundry. Other platforms may leave them empty.
	OrganizationGUID string `json:"organization_guid,omitempty"`
	SpaceGUID        string `json:"space_guid,omitempty"`
	// Context and Parameters are stored as sent; updates replace single fields.
	Context    json.RawMessage `json:"context,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Initial is the original order if an update has changed it since, else nil. Repeated orders are compared
	// with it.
	Initial *InitialOrder `json:"order,omitempty"`
	// User ordered the instance, and administers the runtime unless the parameters name others.
	User string `json:"user,omitempty"`
	// Cluster is the result of the parameters and the plan's defaults.
	Cluster Cluster `json:"cluster"`
}

// InitialOrder has the fields of an order that updates may change. A platform may repeat a provision request
// long after updates, and the repeated request is equal if it matches these values.
type InitialOrder struct {
	PlanID     string          `json:"plan_id"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}
