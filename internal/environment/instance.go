package environment

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Instance is a service instance. Its JSON form is stored with operations.
//
// The row of an instance contains its current state. It changes when an operation succeeds, or immediately if the change needs no
// operation. Steps work on the copy in Data, which was made when the operation was accepted.
type Instance struct {
	// ID is assigned by the platform. After an instance is deleted, its ID can be used again.
	ID string `db:"id" json:"id"`
	// ServiceID and PlanID are the IDs in the catalog. PlanName is the name of the plan.
	ServiceID string `db:"service_id" json:"serviceID"`
	PlanID    string `db:"plan_id"    json:"planID"`
	PlanName  string `db:"plan_name"  json:"planName"`
	// GlobalAccountID is the ID of the tenant. SubAccountID is the ID of the tenant's subaccount that ordered the instance.
	GlobalAccountID string `db:"global_account_id" json:"globalAccountID"`
	SubAccountID    string `db:"subaccount_id"     json:"subAccountID"`
	// SubscriptionAccountID is the ID of the tenant that ordered the instance. It is empty unless the instance was moved to another
	// tenant.
	SubscriptionAccountID string `db:"subscription_account_id" json:"subscriptionAccountID,omitempty"`
	// Platform is the name of the platform that owns the instance: the one that ordered it, unless an administrator moved the
	// instance to another platform. SharedWith names the other platforms that may use the instance. For all other platforms, the
	// instance does not exist.
	Platform   string   `db:"platform" json:"platform,omitempty"`
	SharedWith []string `db:"-"        json:"sharedWith,omitempty"`
	// PlatformRegion is the region in the URL path of the order, or the default region if the path contains none.
	PlatformRegion string `db:"platform_region" json:"platformRegion"`
	// Provider is aws, azure, gcp or openstack. Region is the provider's name for the region of the runtime. Both are empty for
	// clusters that the tenant provides.
	Provider string `db:"provider" json:"provider"`
	Region   string `db:"region"   json:"region"`
	// Name is the display name of the runtime. ShootName is the name of the runtime's Shoot in Gardener.
	Name      string `db:"name"       json:"name"`
	ShootName string `db:"shoot_name" json:"shootName"`
	// RuntimeID is the Provisioner's ID of the runtime. It is empty before the runtime is ordered and after it is removed.
	RuntimeID string `db:"runtime_id" json:"runtimeID"`
	// DashboardURL is the URL of the console for users, or empty if there is no console.
	DashboardURL string `db:"dashboard_url" json:"dashboardURL"`
	// MaintenanceVersion is the plan's maintenance version that was last applied to the runtime. It is empty for instances that
	// were created before maintenance versions were introduced.
	MaintenanceVersion string `db:"maintenance_version" json:"maintenanceVersion,omitempty"`
	// DeletionProtection means that the broker rejects deletion requests from platforms once the instance has been created.
	DeletionProtection bool `db:"deletion_protection" json:"deletionProtection,omitempty"`
	// Suspended means that the runtime was removed but the instance was kept.
	Suspended bool `db:"suspended" json:"suspended,omitempty"`
	// ExpiresAt is when the instance will expire, or zero if it never expires. ExpiredAt is when it expired, or zero; an expired
	// instance can only be deleted.
	ExpiresAt time.Time `db:"-" json:"expiresAt,omitzero"`
	ExpiredAt time.Time `db:"-" json:"expiredAt,omitzero"`
	// Exclusive enforces a plan's limit of one instance per account. All instances of such a plan in one account have the same
	// value, and the database rejects a second instance with this value. It is empty if the plan has no such limit.
	Exclusive string `db:"-" json:"exclusive,omitempty"`
	// Request is zero in instances that were read for a list, because lists do not decrypt it.
	Request   Request   `db:"-" json:"request,omitzero"`
	CreatedAt time.Time `db:"-" json:"createdAt"`
	UpdatedAt time.Time `db:"-" json:"updatedAt"`
}

// RuntimeTenant returns the tenant under which the Provisioner stores the runtime: the account that ordered the instance. The
// runtime uses the credentials of this account even if the instance was moved to another account.
func (i Instance) RuntimeTenant() string { return cmp.Or(i.SubscriptionAccountID, i.GlobalAccountID) }

// InEDP reports whether the instance has a subaccount to register in the Event Data Platform. A tenant's own cluster is not registered.
func (i Instance) InEDP() bool { return i.Request.Cluster.Own == nil && i.SubAccountID != "" }

// Platforms returns the names of the platforms that may use the instance, the owner first.
func (i Instance) Platforms() []string { return slices.Concat([]string{i.Platform}, i.SharedWith) }

// ClusterName returns the display name of the cluster. This is the ShootName, except for clusters that the tenant provides: these
// have the name that the tenant chose, if any. Such instances also have a generated ShootName, but only because the column must
// be unique. If Request is zero, the name that the tenant chose is unknown, and ClusterName returns an empty string.
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

// Shown returns the fields that are written to the audit log, keyed by their names in audit entries. It omits the raw request,
// which can contain credentials. When you add a field to Cluster that users can change, add it here too.
func (i Instance) Shown() map[string]any {
	cluster := i.Request.Cluster

	kyma := Kyma{}
	if cluster.Kyma != nil {
		kyma = *cluster.Kyma
	}

	return map[string]any{
		"plan":              i.PlanName,
		"name":              i.Name,
		"globalAccountID":   i.GlobalAccountID,
		"subAccountID":      i.SubAccountID,
		"platform":          i.Platform,
		"sharedWith":        i.SharedWith,
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
		"kymaVersion":       kyma.Version,
		"modules":           kyma.Modules,

		"maintenanceVersion": i.MaintenanceVersion,
		"serviceManager":     cluster.ServiceManager != nil,
		"deletionProtection": i.DeletionProtection,
	}
}

// Request contains the platform's request and the resulting cluster. It can contain credentials and is encrypted in the database.
type Request struct {
	// OrganizationGUID and SpaceGUID are the Cloud Foundry organization and space. Other platforms may omit them.
	OrganizationGUID string `json:"organization_guid,omitempty"`
	SpaceGUID        string `json:"space_guid,omitempty"`
	// Context and Parameters are stored as the platform sent them. Updates replace individual fields, and numbers of nodes outside the bounds of
	// the plan.
	Context    json.RawMessage `json:"context,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Initial is the original order if an update has changed it, and nil otherwise. It is used to detect repeated orders.
	Initial *InitialOrder `json:"order,omitempty"`
	// Adopted means that the order is not completely known, because Kyma Environment Broker accepted it and did not store the
	// organization, the space and unknown parameters.
	Adopted bool `json:"adopted,omitempty"`
	// User is the user who ordered the instance. This user also administers the runtime, unless the parameters name administrators.
	User string `json:"user,omitempty"`
	// Cluster is derived from the parameters and the defaults of the plan.
	Cluster Cluster `json:"cluster"`
}

// InitialOrder contains the fields of an order that updates can change. If a platform repeats the order after an update, the
// broker compares the repeated order with these values to decide whether the two are the same.
type InitialOrder struct {
	PlanID     string          `json:"plan_id"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}
