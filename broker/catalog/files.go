package catalog

import "github.com/environment-broker/environment-broker/internal/environment"

// The types of the catalog's files. Unknown fields are errors. check.go has the rules that the values must
// follow.

// serviceFile is catalog.yaml.
type serviceFile struct {
	// ID is a GUID. Platforms store it, so it never changes.
	ID string `json:"id"`
	// Name identifies the service for users, for example in cf create-service.
	Name        string `json:"name"`
	Description string `json:"description"`
	// The following fields are shown by marketplaces.
	DisplayName         string   `json:"displayName"`
	LongDescription     string   `json:"longDescription"`
	ImageURL            string   `json:"imageUrl"`
	ProviderDisplayName string   `json:"providerDisplayName"`
	DocumentationURL    string   `json:"documentationUrl"`
	SupportURL          string   `json:"supportUrl"`
	Tags                []string `json:"tags"`
	// Plans are the names of the files in plans/, in the order of the catalog.
	Plans []string `json:"plans"`
	// ReservedNetworks are ranges of addresses that clusters must not use.
	ReservedNetworks []string `json:"reservedNetworks"`
}

// platformsFile is platforms.yaml.
type platformsFile struct {
	// ProviderByDigit maps the first digit in the name of a platform region to a provider, for plans with
	// providerByPlatform.
	ProviderByDigit map[string]string `json:"providerByDigit"`
	// Regions maps the names of platform regions, such as cf-eu10, to their rules. Other regions have no rules.
	Regions map[string]platform `json:"regions"`
}

// platform is a region of the platform. resources/platforms.yaml explains the fields.
type platform struct {
	// Defaults maps providers to the region of orders that name none.
	Defaults map[string]string `json:"defaults"`
	// Only maps providers to the allowed regions. If it is not empty, providers without an entry are not
	// allowed.
	Only map[string][]string `json:"only"`
	// EUAccess restricts operators of the runtimes to those in the European Union.
	EUAccess bool `json:"euAccess"`
}

// planFile is a file in plans/.
type planFile struct {
	// ID is a GUID. Platforms and instances store it, so it never changes.
	ID string `json:"id"`
	// Name is also the name of the file. Instances store it.
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Description string   `json:"description"`
	Bullets     []string `json:"bullets"`
	// Free reports that instances cost nothing. Costs are shown by marketplaces; the broker charges nobody.
	Free  bool   `json:"free"`
	Costs []cost `json:"costs"`
	// Maintenance has the version that instances reach by an update with maintenance_info. Raise it with every
	// change that running instances should get.
	Maintenance struct {
		Version     string `json:"version"`
		Description string `json:"description"`
	} `json:"maintenance"`
	// Parameters are the parameters of orders, in the order of the form.
	Parameters []string `json:"parameters"`
	// Required are the parameters that an order must have, Updates those that an update may have.
	Required []string `json:"required"`
	Updates  []string `json:"updates"`
	// BecomesPlans are the plans to which instances may change.
	BecomesPlans []string `json:"becomesPlans"`
	// Purpose is the default purpose of clusters in Gardener.
	Purpose string `json:"purpose"`
	// LicenceType and SharedCredentials are passed to the cluster: see environment.Cluster.
	LicenceType       string `json:"licenceType"`
	SharedCredentials bool   `json:"sharedCredentials"`
	// ZonesCount is the number of zones with worker nodes, or all zones of regions with fewer.
	ZonesCount int `json:"zonesCount"`
	// Nodes has the defaults of the autoscaler, min and max, and the bounds for orders.
	Nodes struct {
		Min     int `json:"min"`
		Max     int `json:"max"`
		Lowest  int `json:"lowest"`
		Highest int `json:"highest"`
	} `json:"nodes"`
	// Volume has the default size in GB and the bounds for orders.
	Volume struct {
		Size     int `json:"size"`
		Smallest int `json:"smallest"`
		Largest  int `json:"largest"`
	} `json:"volume"`
	// Areas is set in plans whose region is a part of the world instead of a region of a provider.
	Areas areas `json:"areas"`
	// ProviderByPlatform chooses the offer by the platform region.
	ProviderByPlatform bool    `json:"providerByPlatform"`
	Offers             []offer `json:"offers"`
	// OwnCluster marks the plan for clusters of the tenant, which has no offers.
	OwnCluster bool `json:"ownCluster"`
}

// cost is a price, such as {amount: {eur: 0.5}, unit: HOURLY}.
type cost struct {
	Amount map[string]float64 `json:"amount"`
	Unit   string             `json:"unit"`
}

// areas are the regions of plans whose regions are parts of the world.
type areas struct {
	// Default is the area of orders that name none, from platform regions without an area.
	Default string `json:"default"`
	// PlatformRegions maps platform regions to areas.
	PlatformRegions map[string]string `json:"platformRegions"`
}

// offer has the regions and machines of a plan on one provider. Regions are listed by name or by area.
type offer struct {
	Provider string `json:"provider"`
	// DefaultRegion is the region of orders that name none, from platform regions without a default.
	DefaultRegion string   `json:"defaultRegion"`
	Regions       []string `json:"regions"`
	// Areas maps areas to regions of the provider, in plans with areas.
	Areas map[string]string `json:"areas"`
	// Machines lists machine types; the first one is the default.
	Machines []string `json:"machines"`
}

// providerFile is a file in providers/.
type providerFile struct {
	// Name is the provider's name in Gardener and the name of the file.
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	// VolumeType is empty if disks come with the machine type.
	VolumeType string `json:"volumeType"`
	// Networking has the ranges of orders that name none.
	Networking networking `json:"networking"`
	// ZoneFormat is the full name of a zone, with the placeholders {region} and {zone}.
	ZoneFormat string            `json:"zoneFormat"`
	Regions    map[string]region `json:"regions"`
	// Machines maps machine types to descriptions for people.
	Machines map[string]string `json:"machines"`
	// Limited has the zones, by region, of machine types that are not available everywhere.
	Limited map[string]map[string][]string `json:"limited"`
	// OpenStack is for that provider only.
	OpenStack *environment.OpenStack `json:"openStack"`
}

// region is a region of a provider. Zones are the suffixes that ZoneFormat completes to names.
type region struct {
	DisplayName string   `json:"displayName"`
	Zones       []string `json:"zones"`
}
