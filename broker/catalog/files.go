package catalog

import (
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
)

// This file defines the format of the catalog's files. Unknown fields are errors. The rules for the values are in
// check.go.

// serviceFile is the content of catalog.yaml.
type serviceFile struct {
	// ID is a GUID. Platforms store it, so it must never change.
	ID string `json:"id"`
	// Name identifies the service for users, for example in cf create-service.
	Name        string `json:"name"`
	Description string `json:"description"`
	// Marketplaces show the following fields.
	DisplayName         string   `json:"displayName"`
	LongDescription     string   `json:"longDescription"`
	ImageURL            string   `json:"imageUrl"`
	ProviderDisplayName string   `json:"providerDisplayName"`
	DocumentationURL    string   `json:"documentationUrl"`
	SupportURL          string   `json:"supportUrl"`
	Tags                []string `json:"tags"`
	// Plans lists the names of the files in plans/, without their extension, in the order in which platforms show the plans.
	Plans []string `json:"plans"`
	// ReservedNetworks lists address ranges that clusters must not use.
	ReservedNetworks []string `json:"reservedNetworks"`
	// MaintenancePolicy determines the maintenance windows of instances, in which orchestrations upgrade them.
	MaintenancePolicy fleet.Policy `json:"maintenancePolicy"`
}

// platformsFile is the content of platforms.yaml.
type platformsFile struct {
	// ProviderByDigit maps the first digit in the name of a platform region to a provider. Plans with
	// ProviderByPlatform use it.
	ProviderByDigit map[string]string `json:"providerByDigit"`
	// Regions maps the names of platform regions, such as cf-eu10, to their rules. Regions that are not listed have
	// no rules.
	Regions map[string]platform `json:"regions"`
}

// platform contains the rules of a platform region. The fields are described in resources/platforms.yaml.
type platform struct {
	// Defaults maps a provider to the region for orders that do not specify one.
	Defaults map[string]string `json:"defaults"`
	// Only maps a provider to its allowed regions. If Only is not empty, providers that it does not list are not
	// allowed.
	Only map[string][]string `json:"only"`
	// EUAccess reports whether only operators in the European Union may access the runtimes.
	EUAccess bool `json:"euAccess"`
}

// planFile is the content of a file in plans/.
type planFile struct {
	// ID is a GUID. Platforms and instances store it, so it must never change.
	ID string `json:"id"`
	// Name identifies the plan for users and in BecomesPlans. Instances store it, so it must never change.
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Description string   `json:"description"`
	Bullets     []string `json:"bullets"`
	// Free reports whether instances cost nothing. Marketplaces show the costs; the broker does not charge anyone.
	Free  bool   `json:"free"`
	Costs []cost `json:"costs"`
	// Maintenance contains the version that an update with maintenance_info installs. Increase it with every change that existing
	// instances should get.
	Maintenance struct {
		Version     string `json:"version"`
		Description string `json:"description"`
	} `json:"maintenance"`
	// MaintenanceWindow is the maintenance window of the plan's instances. serviceFile.MaintenancePolicy can override it.
	MaintenanceWindow fleet.WindowTimes `json:"maintenanceWindow"`
	// Parameters lists the parameters of orders, in the order of the form.
	Parameters []string `json:"parameters"`
	// Required lists the parameters that an order must contain. Updates lists the parameters that an update may
	// contain.
	Required []string `json:"required"`
	Updates  []string `json:"updates"`
	// BecomesPlans lists the plans to which an instance can be changed.
	BecomesPlans []string `json:"becomesPlans"`
	// Purpose is the default purpose of clusters in Gardener.
	Purpose string `json:"purpose"`
	// LicenceType and SharedCredentials are copied to the fields of environment.Cluster with the same names.
	LicenceType       string `json:"licenceType"`
	SharedCredentials bool   `json:"sharedCredentials"`
	// ZonesCount is the default number of zones for worker nodes. In a region with fewer zones, clusters use all of them.
	ZonesCount int `json:"zonesCount"`
	// Nodes contains the default limits of the autoscaler (Min, Max) and the bounds for orders (Lowest, Highest).
	Nodes struct {
		Min     int `json:"min"`
		Max     int `json:"max"`
		Lowest  int `json:"lowest"`
		Highest int `json:"highest"`
	} `json:"nodes"`
	// Volume contains the default disk size in GB and the bounds for orders.
	Volume struct {
		Size     int `json:"size"`
		Smallest int `json:"smallest"`
		Largest  int `json:"largest"`
	} `json:"volume"`
	// Areas is set if users choose a part of the world, such as europe, instead of a provider's region.
	Areas areas `json:"areas"`
	// ProviderByPlatform reports whether the platform region determines the provider, and thereby the offer.
	ProviderByPlatform bool    `json:"providerByPlatform"`
	Offers             []offer `json:"offers"`
	// Kyma configures the Kyma that the Provisioner or the Reconciler installs. LifecycleManager configures the Kyma that
	// Lifecycle Manager installs. Each is nil if the plan has no such section.
	Kyma             *kymaPlan             `json:"kyma"`
	LifecycleManager *lifecycleManagerPlan `json:"lifecycleManager"`
	// DeletionProtection is the default of the deletionProtection parameter. If the plan does not have the parameter, the value
	// applies to all its instances.
	DeletionProtection bool `json:"deletionProtection"`
	// OwnCluster reports whether tenants bring the clusters of this plan. Such a plan has no offers.
	OwnCluster bool `json:"ownCluster"`
}

// cost is a price, such as {amount: {eur: 0.5}, unit: HOURLY}.
type cost struct {
	Amount map[string]float64 `json:"amount"`
	Unit   string             `json:"unit"`
}

// areas configures a plan whose regions are parts of the world.
type areas struct {
	// Default is the area for orders that specify no region, if PlatformRegions does not list their platform region.
	Default string `json:"default"`
	// PlatformRegions maps platform regions to default areas.
	PlatformRegions map[string]string `json:"platformRegions"`
}

// offer contains the regions and machine types of a plan on one provider. Regions are listed by name or by area.
type offer struct {
	Provider string `json:"provider"`
	// DefaultRegion is the region for orders that specify no region, if their platform region has no default.
	DefaultRegion string   `json:"defaultRegion"`
	Regions       []string `json:"regions"`
	// Areas maps areas to regions of the provider. It is set only in plans with areas.
	Areas map[string]string `json:"areas"`
	// Machines lists machine types; the first one is the default.
	Machines []string `json:"machines"`
}

// providerFile is the content of a file in providers/.
type providerFile struct {
	// Name is the provider's name in Gardener. It equals the name of the file without the extension.
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	// VolumeType is empty if the machine type determines the disks.
	VolumeType string `json:"volumeType"`
	// Networking contains the default address ranges.
	Networking networking `json:"networking"`
	// ZoneFormat is the format of zone names, with the placeholders {region} and {zone}.
	ZoneFormat string            `json:"zoneFormat"`
	Regions    map[string]region `json:"regions"`
	// Machines maps machine types to descriptions for users.
	Machines map[string]string `json:"machines"`
	// Limited lists the machine types that only some zones offer. It maps each of them to its regions, and each region to the zones
	// that offer the machine type.
	Limited map[string]map[string][]string `json:"limited"`
	// OpenStack is set only for the openstack provider.
	OpenStack *environment.OpenStack `json:"openStack"`
}

// region is a region of a provider. Zones are suffixes; ZoneFormat turns them into full names.
type region struct {
	DisplayName string   `json:"displayName"`
	Zones       []string `json:"zones"`
}
