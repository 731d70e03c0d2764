package catalog

import "github.com/environment-broker/environment-broker/internal/environment"

// The files of the catalog, as they are written. Unknown fields are errors.

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
	// Plans names the files in plans/, in the order of the catalog.
	Plans []string `json:"plans"`
	// ReservedNetworks are the ranges of addresses that no cluster may use.
	ReservedNetworks []string `json:"reservedNetworks"`
}

// platformsFile is platforms.yaml.
type platformsFile struct {
	ProviderByDigit map[string]string   `json:"providerByDigit"`
	Regions         map[string]platform `json:"regions"`
}

// platform is what a region of the platform means for an order.
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
	// Parameters names what an order may say, in the order of a form.
	Parameters []string `json:"parameters"`
	// Required names those of them that an order has to say, Updates what an update may say.
	Required []string `json:"required"`
	Updates  []string `json:"updates"`
	// BecomesPlans names the plans that an instance may be changed to.
	BecomesPlans      []string `json:"becomesPlans"`
	Purpose           string   `json:"purpose"`
	LicenceType       string   `json:"licenceType"`
	SharedCredentials bool     `json:"sharedCredentials"`
	// ZonesCount is over how many zones worker nodes are spread, where the region has so many.
	ZonesCount int `json:"zonesCount"`
	// Nodes has the defaults of the autoscaler and the bounds of what may be ordered.
	Nodes struct {
		Min     int `json:"min"`
		Max     int `json:"max"`
		Lowest  int `json:"lowest"`
		Highest int `json:"highest"`
	} `json:"nodes"`
	// Volume has the default size in GB and the bounds of what may be ordered.
	Volume struct {
		Size     int `json:"size"`
		Smallest int `json:"smallest"`
		Largest  int `json:"largest"`
	} `json:"volume"`
	Areas areas `json:"areas"`
	// ProviderByPlatform leaves the choice among the offers to the platform's region.
	ProviderByPlatform bool    `json:"providerByPlatform"`
	Offers             []offer `json:"offers"`
	// OwnCluster says that the tenant brings the cluster: there is nothing to offer.
	OwnCluster bool `json:"ownCluster"`
}

// cost is a price, such as {amount: {eur: 0.5}, unit: HOURLY}.
type cost struct {
	Amount map[string]float64 `json:"amount"`
	Unit   string             `json:"unit"`
}

// areas is for plans whose regions are parts of the world.
type areas struct {
	Default string `json:"default"`
	// PlatformRegions tells the area of a platform's region.
	PlatformRegions map[string]string `json:"platformRegions"`
}

// offer is what a plan has on one provider: regions by their names, or by areas.
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
	// VolumeType is empty where disks come with the machine type.
	VolumeType string `json:"volumeType"`
	Networking struct {
		Nodes    string `json:"nodes"`
		Pods     string `json:"pods"`
		Services string `json:"services"`
	} `json:"networking"`
	// ZoneFormat makes the full name of a zone from {region} and {zone}.
	ZoneFormat string            `json:"zoneFormat"`
	Regions    map[string]region `json:"regions"`
	// Machines tells machine types to people.
	Machines map[string]string `json:"machines"`
	// Limited tells of machine types that are not to be had everywhere the zones, by region, in which they are.
	Limited map[string]map[string][]string `json:"limited"`
	// OpenStack is for that provider only.
	OpenStack *environment.OpenStack `json:"openStack"`
}

type region struct {
	DisplayName string   `json:"displayName"`
	Zones       []string `json:"zones"`
}
