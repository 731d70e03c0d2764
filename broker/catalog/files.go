package catalog

import "github.com/environment-broker/environment-broker/internal/environment"

// The types of the catalog's files. Unknown fields are errors.

// serviceFile is catalog.yaml.
type serviceFile struct {
	ID                  string   `json:"id"`
	Name                string   `json:"name"`
	Description         string   `json:"description"`
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
	ProviderByDigit map[string]string   `json:"providerByDigit"`
	Regions         map[string]platform `json:"regions"`
}

// platform is a region of the platform. resources/platforms.yaml explains the fields.
type platform struct {
	Defaults map[string]string   `json:"defaults"`
	Only     map[string][]string `json:"only"`
	EUAccess bool                `json:"euAccess"`
}

// planFile is a file in plans/.
type planFile struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Description string   `json:"description"`
	Bullets     []string `json:"bullets"`
	Free        bool     `json:"free"`
	Costs       []cost   `json:"costs"`
	Maintenance struct {
		Version     string `json:"version"`
		Description string `json:"description"`
	} `json:"maintenance"`
	// Parameters are the parameters of orders, in the order of the form.
	Parameters []string `json:"parameters"`
	// Required are those that an order must have, Updates those of updates.
	Required []string `json:"required"`
	Updates  []string `json:"updates"`
	// BecomesPlans are the plans to which instances may change.
	BecomesPlans      []string `json:"becomesPlans"`
	Purpose           string   `json:"purpose"`
	LicenceType       string   `json:"licenceType"`
	SharedCredentials bool     `json:"sharedCredentials"`
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
	Default string `json:"default"`
	// PlatformRegions maps platform regions to areas.
	PlatformRegions map[string]string `json:"platformRegions"`
}

// offer has the regions and machines of a plan on one provider. Regions are listed by name or by area.
type offer struct {
	Provider      string            `json:"provider"`
	DefaultRegion string            `json:"defaultRegion"`
	Regions       []string          `json:"regions"`
	Areas         map[string]string `json:"areas"`
	// Machines lists machine types; the first one is the default.
	Machines []string `json:"machines"`
}

// providerFile is a file in providers/.
type providerFile struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	// VolumeType is empty if disks come with the machine type.
	VolumeType string `json:"volumeType"`
	Networking struct {
		Nodes    string `json:"nodes"`
		Pods     string `json:"pods"`
		Services string `json:"services"`
	} `json:"networking"`
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
