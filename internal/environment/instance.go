package environment

import (
	"cmp"
	"encoding/json"
	"time"
)

// Instance is a service instance. Its JSON names are stored with operations.
type Instance struct {
	ID        string `json:"id"`
	ServiceID string `json:"serviceID"`
	PlanID    string `json:"planID"`
	PlanName  string `json:"planName"`
	// GlobalAccountID is the tenant, SubAccountID the part of it that ordered the instance.
	GlobalAccountID string `json:"globalAccountID"`
	SubAccountID    string `json:"subAccountID"`
	// SubscriptionAccountID is the tenant that ordered the instance, empty unless the instance has moved to another tenant since.
	SubscriptionAccountID string `json:"subscriptionAccountID,omitempty"`
	// PlatformRegion is the region in the path of the order, or the default one.
	PlatformRegion string `json:"platformRegion"`
	// Provider is aws, azure, gcp or openstack; Region is the provider's name of the runtime's region. Both are empty for clusters that
	// the tenant brings.
	Provider string `json:"provider"`
	Region   string `json:"region"`
	// Name is the runtime's name for people, ShootName the name of its Shoot in Gardener.
	Name      string `json:"name"`
	ShootName string `json:"shootName"`
	// RuntimeID is the Provisioner's id of the runtime, empty until the runtime has been ordered.
	RuntimeID    string `json:"runtimeID"`
	DashboardURL string `json:"dashboardURL"`
	// MaintenanceVersion is the version of the plan that the runtime has, empty for instances older than versions.
	MaintenanceVersion string `json:"maintenanceVersion,omitempty"`
	// Suspended reports that the runtime was removed and the instance kept.
	Suspended bool `json:"suspended,omitempty"`
	// ExpiresAt is when the instance expires, zero for never. ExpiredAt is when it did: from then on it can only be deleted.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	ExpiredAt time.Time `json:"expiredAt,omitzero"`
	// Exclusive is a value that no other instance has at the same time, or empty. The database enforces it.
	Exclusive string    `json:"exclusive,omitempty"`
	Request   Request   `json:"request,omitzero"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// RuntimeTenant returns the tenant under which the Provisioner knows the runtime: the account that ordered the instance. The runtime has
// the credentials of that account even if the instance has moved to another one.
func (i Instance) RuntimeTenant() string { return cmp.Or(i.SubscriptionAccountID, i.GlobalAccountID) }

// Expired reports whether the instance can only be deleted.
func (i Instance) Expired() bool { return !i.ExpiredAt.IsZero() }

// Shown returns the fields for the audit log. The request is not among them, because it may hold credentials.
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
		"shootName":         i.ShootName,
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

// Request holds the platform's request and the cluster that it resolves to. It may hold credentials and is sealed in the database.
type Request struct {
	OrganizationGUID string `json:"organization_guid,omitempty"`
	SpaceGUID        string `json:"space_guid,omitempty"`
	// Context and Parameters are stored as sent; updates replace single fields.
	Context    json.RawMessage `json:"context,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Initial is the original order if an update has changed it since, else nil. Repeated orders are compared with it.
	Initial *InitialOrder `json:"order,omitempty"`
	// User ordered the instance, and administers the runtime unless the parameters name others.
	User string `json:"user,omitempty"`
	// Cluster is the result of the parameters and the plan's defaults.
	Cluster Cluster `json:"cluster"`
}

// InitialOrder has the fields of an order that updates may change.
type InitialOrder struct {
	PlanID     string          `json:"plan_id"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}
