package catalog

import (
	"cmp"
	_ "embed" // parameters.yaml
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// Names of parameters to which special rules apply. Platforms and scripts use the names, so they must never change.
const (
	paramProvider      = "provider"
	paramRegion        = "region"
	paramKubeconfig    = "kubeconfig"
	paramMachineType   = "machineType"
	paramAutoScalerMin = "autoScalerMin"
	paramAutoScalerMax = "autoScalerMax"
	paramVolumeSize    = "volumeSizeGb"
	paramMaxSurge      = "maxSurge"
	paramZones         = "zones"
	paramModules       = "modules"
	paramKymaVersion   = "kymaVersion"
	paramProtection    = "deletionProtection"
	paramUpgradeTime   = "upgradeTime"

	paramOIDC           = "oidc"
	paramAdministrators = "administrators"
)

// maxName is the maximum length of a runtime's name, in characters. The Shoot has a separate, shorter name.
const maxName = 64

// parameters are the parameters of an order or an update. Fields that were not sent are nil or zero.
type parameters struct {
	Name           string   `json:"name"`
	Provider       string   `json:"provider"`
	Region         string   `json:"region"`
	MachineType    string   `json:"machineType"`
	AutoScalerMin  *int     `json:"autoScalerMin"`
	AutoScalerMax  *int     `json:"autoScalerMax"`
	MaxSurge       *int     `json:"maxSurge"`
	MaxUnavailable *int     `json:"maxUnavailable"`
	Zones          []string `json:"zones"`
	VolumeSizeGB   *int     `json:"volumeSizeGb"`
	Purpose        string   `json:"purpose"`
	Administrators []string `json:"administrators"`

	DeletionProtection *bool `json:"deletionProtection"`
	// UpgradeTime is in RFC 3339 format. Only updates can contain it.
	UpgradeTime string `json:"upgradeTime"`

	KymaVersion string            `json:"kymaVersion"`
	Modules     modulesParameters `json:"modules"`

	OIDC       oidcParameters `json:"oidc"`
	Networking networking     `json:"networking"`

	Kubeconfig  string `json:"kubeconfig"`
	ShootName   string `json:"shootName"`
	ShootDomain string `json:"shootDomain"`
}

// apply sets the given parameters in the cluster. For absent parameters, empty strings and empty lists, the cluster
// keeps its values.
func (given parameters) apply(cluster *environment.Cluster) {
	cluster.MachineType = cmp.Or(given.MachineType, cluster.MachineType)
	setTo(&cluster.VolumeSizeGB, given.VolumeSizeGB)
	setTo(&cluster.AutoScalerMin, given.AutoScalerMin)
	setTo(&cluster.AutoScalerMax, given.AutoScalerMax)
	setTo(&cluster.MaxSurge, given.MaxSurge)
	setTo(&cluster.MaxUnavailable, given.MaxUnavailable)
	cluster.Purpose = cmp.Or(given.Purpose, cluster.Purpose)

	cluster.NodesCIDR = cmp.Or(given.Networking.Nodes, cluster.NodesCIDR)
	cluster.PodsCIDR = cmp.Or(given.Networking.Pods, cluster.PodsCIDR)
	cluster.ServicesCIDR = cmp.Or(given.Networking.Services, cluster.ServicesCIDR)

	if len(given.Zones) > 0 {
		cluster.Zones = given.Zones
	}

	if len(given.Administrators) > 0 {
		cluster.Administrators = slices.Clone(given.Administrators)
	}

	cluster.OIDC = given.OIDC.mergeInto(cluster.OIDC)
}

// checkAdministrators rejects names with control characters, as the Provisioner does. The schema cannot have a pattern for this: the
// regular expressions of some platforms reject escapes of characters outside of ASCII, and thus the whole catalog.
func (given parameters) checkAdministrators(violations *Violations) {
	for i, name := range given.Administrators {
		violations.require(!strings.ContainsFunc(name, unicode.IsControl), fmt.Sprintf("administrators.%d", i), ruleControl,
			"must not contain control characters")
	}
}

// setTo sets field to the given value, unless given is nil. Zero is a valid value, for example for maxUnavailable.
func setTo[Value any](field, given *Value) {
	if given != nil {
		*field = *given
	}
}

// purposes returns the Shoot purposes that users may choose.
func purposes() []string { return []string{"evaluation", "testing", "development", "production"} }

// ownParameters returns the parameters that are valid for clusters that tenants bring.
func ownParameters() []string {
	return []string{"name", paramKubeconfig, "shootName", "shootDomain", paramProtection}
}

// updatable returns the parameters that a plan may allow in updates: those that Gardener can change in a running
// cluster, the kubeconfig of a cluster that the tenant brings, the Kyma modules, and the deletion protection.
func updatable() []string {
	return []string{
		paramMachineType, paramAutoScalerMin, paramAutoScalerMax, paramVolumeSize, paramMaxSurge, "maxUnavailable", paramOIDC, paramAdministrators,
		paramKubeconfig, paramModules, paramProtection,
	}
}

//go:embed parameters.yaml
var parameterFile []byte

// schemas maps the names of parameters to their JSON schemas.
type schemas map[string]map[string]any

// completeSchemas adds the keywords that depend on the plan to the schemas of parameters.yaml. The plan must have
// passed content.check, which ensures that a plan without offers has no parameters that depend on offers.
func (p *Plan) completeSchemas() {
	p.schemas["name"]["maxLength"] = maxName
	p.schemas["purpose"]["enum"], p.schemas["purpose"]["default"] = purposes(), p.Purpose
	p.schemas[paramProtection]["default"] = p.DeletionProtection

	for name, bounds := range map[string]struct{ lowest, highest, standard int }{
		paramAutoScalerMin: {p.Nodes.Lowest, p.Nodes.Highest, p.Nodes.Min},
		paramAutoScalerMax: {p.Nodes.Lowest, p.Nodes.Highest, p.Nodes.Max},
		paramVolumeSize:    {p.Volume.Smallest, p.Volume.Largest, p.Volume.Size},
		paramMaxSurge:      {0, p.Nodes.Highest, p.ZonesCount},
		"maxUnavailable":   {0, p.Nodes.Highest, 0},
	} {
		schema := p.schemas[name]
		schema["minimum"], schema["maximum"], schema["default"] = bounds.lowest, bounds.highest, bounds.standard
	}

	p.completeModules()

	if len(p.Offers) > 0 {
		p.completeChoices()
	}
}

// completeChoices adds the providers, regions, machine types and networks of the plan's offers.
func (p *Plan) completeChoices() {
	standard := p.providers[p.Offers[0].Provider]
	display, lowerCase := []string{}, []string{}
	regions, regionNames := []string{}, map[string]string{}

	for _, offer := range p.Offers {
		provider := p.providers[offer.Provider]
		display = append(display, provider.DisplayName)

		if offer.Provider != provider.DisplayName {
			lowerCase = append(lowerCase, offer.Provider)
		}

		for _, name := range offer.Regions {
			regions = append(regions, name)
			regionNames[name] = provider.Regions[name].DisplayName
		}
	}

	// Accept the display name and the lower-case name of a provider.
	p.schemas[paramProvider]["enum"], p.schemas[paramProvider]["default"] = append(display, lowerCase...), display[0]

	region := p.schemas[paramRegion]
	if p.byArea() {
		region["description"], region["enum"] = "The part of the world where the cluster runs.", p.areaNames()
	} else {
		// The schema cannot contain the default, because it depends on the platform region.
		region["description"] = "The region of the cluster. A platform region can have its own default; otherwise, the default is " + p.Offers[0].DefaultRegion + "."
		region["enum"], region["_enumDisplayName"] = regions, regionNames
	}

	// Only plans with a single provider have the machineType parameter.
	machines, sizes := p.Offers[0].Machines, map[string]string{}
	for _, name := range machines {
		sizes[name] = name + " (" + standard.Machines[name] + ")"
	}

	machine := p.schemas[paramMachineType]
	machine["enum"], machine["default"], machine["_enumDisplayName"] = machines, machines[0], sizes

	networks, _ := p.schemas["networking"]["properties"].(map[string]any)
	for name, cidr := range map[string]string{
		"nodes": standard.Networking.Nodes, "pods": standard.Networking.Pods, "services": standard.Networking.Services,
	} {
		if network, ok := networks[name].(map[string]any); ok {
			network["default"] = cidr
		}
	}
}
