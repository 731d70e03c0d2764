package catalog

import (
	"slices"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// Names of parameters with rules in the code.
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
)

// maxName is the longest name of a runtime, in characters.
const maxName = 64

// maxZones is the highest number of zones that every provider supports.
const maxZones = 4

// parameters are those of an order or an update. A field that was not sent is nil or zero.
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

	OIDC       oidcParameters `json:"oidc"`
	Networking networking     `json:"networking"`

	Kubeconfig  string `json:"kubeconfig"`
	ShootName   string `json:"shootName"`
	ShootDomain string `json:"shootDomain"`
}

// apply sets the given parameters in the cluster.
func (given parameters) apply(cluster *environment.Cluster) {
	set(&cluster.MachineType, &given.MachineType)
	setTo(&cluster.VolumeSizeGB, given.VolumeSizeGB)
	setTo(&cluster.AutoScalerMin, given.AutoScalerMin)
	setTo(&cluster.AutoScalerMax, given.AutoScalerMax)
	setTo(&cluster.MaxSurge, given.MaxSurge)
	setTo(&cluster.MaxUnavailable, given.MaxUnavailable)
	set(&cluster.Purpose, &given.Purpose)

	set(&cluster.NodesCIDR, &given.Networking.Nodes)
	set(&cluster.PodsCIDR, &given.Networking.Pods)
	set(&cluster.ServicesCIDR, &given.Networking.Services)

	if len(given.Zones) > 0 {
		cluster.Zones = given.Zones
	}

	if len(given.Administrators) > 0 {
		cluster.Administrators = slices.Clone(given.Administrators)
	}

	cluster.OIDC = given.OIDC.over(cluster.OIDC)
}

// set sets a text unless the given one is empty.
func set(text, given *string) {
	if *given != "" {
		*text = *given
	}
}

// setTo sets a number unless the given one is nil.
func setTo(number, given *int) {
	if given != nil {
		*number = *given
	}
}

// purposes are the purposes of Gardener that users may choose.
func purposes() []string { return []string{"evaluation", "testing", "development", "production"} }

// ownParameters are the parameters that apply to a cluster of the tenant.
func ownParameters() []string { return []string{"name", paramKubeconfig, "shootName", "shootDomain"} }

// updatable are the parameters that a plan may allow in updates.
func updatable() []string {
	return []string{
		paramMachineType, paramAutoScalerMin, paramAutoScalerMax, paramVolumeSize, paramMaxSurge, "maxUnavailable", "oidc", "administrators",
		paramKubeconfig,
	}
}

// parameterSchemas returns the JSON schema of each parameter for a plan. A new parameter needs an entry here, a field in parameters, and a
// line in apply.
func parameterSchemas() map[string]func(*Plan) map[string]any {
	return map[string]func(*Plan) map[string]any{
		"name": func(*Plan) map[string]any {
			return property("string", "Display name of the cluster.", map[string]any{
				"minLength": 1, "maxLength": maxName, "pattern": "^[a-zA-Z0-9-]*$",
				"_BTPdefaultTemplate": map[string]any{"elements": []string{"saSubdomain"}},
			})
		},
		paramProvider:    providerSchema,
		"region":         regionSchema,
		paramMachineType: machineSchema,
		paramAutoScalerMin: func(p *Plan) map[string]any {
			return integer("Minimum number of worker nodes.", p.Nodes.Lowest, p.Nodes.Highest, p.Nodes.Min)
		},
		paramAutoScalerMax: func(p *Plan) map[string]any {
			return integer("Maximum number of worker nodes.", p.Nodes.Lowest, p.Nodes.Highest, p.Nodes.Max)
		},
		paramVolumeSize: func(p *Plan) map[string]any {
			return integer("Size of a worker node's disk in GB.", p.Volume.Smallest, p.Volume.Largest, p.Volume.Size)
		},
		paramMaxSurge: func(p *Plan) map[string]any {
			return integer("Maximum number of nodes that are added while nodes are replaced.", 0, p.Nodes.Highest, p.ZonesCount)
		},
		"maxUnavailable": func(p *Plan) map[string]any {
			return integer("Maximum number of nodes that may be missing while nodes are replaced.", 0, p.Nodes.Highest, 0)
		},
		paramZones: func(*Plan) map[string]any {
			return property("array", "Zones of the region for the worker nodes.", map[string]any{
				"items": map[string]any{"type": "string", "minLength": 1}, "minItems": 1, "maxItems": maxZones, "uniqueItems": true,
			})
		},
		"purpose": func(p *Plan) map[string]any {
			return property("string", "Purpose of the cluster.", map[string]any{"enum": purposes(), "default": p.Purpose})
		},
		"administrators": func(*Plan) map[string]any {
			return property("array", "Administrators of the cluster. The default is the user who orders it.", map[string]any{
				"items": map[string]any{"type": "string", "minLength": 1}, "uniqueItems": true,
			})
		},
		"oidc":       oidcSchema,
		"networking": networkingSchema,
		paramKubeconfig: func(*Plan) map[string]any {
			return property("string", "The kubeconfig of the cluster, encoded as base64. It must not refer to programs or files.", map[string]any{"minLength": 1})
		},
		"shootName": func(*Plan) map[string]any {
			return property("string", "The name of the cluster at its provider.", map[string]any{"minLength": 1, "maxLength": maxName})
		},
		"shootDomain": func(*Plan) map[string]any {
			return property("string", "The domain of the cluster.", map[string]any{"minLength": 1, "maxLength": maxText})
		},
	}
}

// providerSchema allows the display names of providers, and their lower-case names.
func providerSchema(p *Plan) map[string]any {
	var names []string

	for _, offer := range p.Offers {
		names = append(names, p.providers[offer.Provider].DisplayName)
	}

	for _, offer := range p.Offers {
		if !slices.Contains(names, offer.Provider) {
			names = append(names, offer.Provider)
		}
	}

	return property("string", "The infrastructure provider of the cluster.", map[string]any{"enum": names, "default": names[0]})
}

// regionSchema lists the areas of a plan that is offered by area, else the regions of all its offers.
func regionSchema(p *Plan) map[string]any {
	if p.byArea() {
		return property("string", "The part of the world where the cluster runs.", map[string]any{"enum": p.areaNames()})
	}

	display, names := map[string]any{}, []string{}

	for _, offer := range p.Offers {
		for _, name := range offer.Regions {
			display[name] = p.providers[offer.Provider].Regions[name].DisplayName
			names = append(names, name)
		}
	}

	// The schema has no default, because that depends on the platform region.
	description := "The region of the cluster. The default depends on the platform's region; without one it is " + p.Offers[0].DefaultRegion + "."

	return property("string", description, map[string]any{"enum": names, "_enumDisplayName": display})
}

// machineSchema lists the machine types of the plan's only provider. Plans with several providers cannot have the parameter.
func machineSchema(p *Plan) map[string]any {
	offer := p.Offers[0]
	display := map[string]any{}

	for _, name := range offer.Machines {
		display[name] = name + " (" + p.providers[offer.Provider].Machines[name] + ")"
	}

	return property("string", "The machine type of the worker nodes.", map[string]any{
		"enum": offer.Machines, "default": offer.Machines[0], "_enumDisplayName": display,
	})
}

// property returns the schema of a parameter: its type, its description for users, and more keywords, which it changes.
func property(kind, description string, more map[string]any) map[string]any {
	more["type"], more["description"] = kind, description

	return more
}

// integer returns the schema of an integer with bounds and a default.
func integer(description string, lowest, highest, standard int) map[string]any {
	return property("integer", description, map[string]any{"minimum": lowest, "maximum": highest, "default": standard})
}
