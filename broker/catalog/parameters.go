package catalog

// The names of parameters that the code has to know.
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

// longestName bounds the name of a runtime, in characters.
const longestName = 64

// mostZones is over how many zones worker nodes can be spread on every provider.
const mostZones = 4

// parameters is what an order may say. A pointer is nil where the order is silent.
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

// purposes are the purposes that Gardener knows and users may choose.
func purposes() []string { return []string{"evaluation", "testing", "development", "production"} }

// ownParameters are those that make sense for a cluster that the tenant brings.
func ownParameters() []string { return []string{"name", paramKubeconfig, "shootName", "shootDomain"} }

// updatable are the parameters that may be changed later, where a plan says so.
func updatable() []string {
	return []string{
		paramMachineType, paramAutoScalerMin, paramAutoScalerMax, paramVolumeSize, paramMaxSurge, "maxUnavailable", "oidc", "administrators",
		paramKubeconfig,
	}
}

// parameterSchemas makes the JSON schema of each parameter for a plan.
func parameterSchemas() map[string]func(*Plan) map[string]any {
	return map[string]func(*Plan) map[string]any{
		"name": func(*Plan) map[string]any {
			return property("string", "Name of the cluster for people.", map[string]any{
				"minLength": 1, "maxLength": longestName, "pattern": "^[a-zA-Z0-9-]*$",
				"_BTPdefaultTemplate": map[string]any{"elements": []string{"saSubdomain"}},
			})
		},
		paramProvider:    providerSchema,
		"region":         regionSchema,
		paramMachineType: machineSchema,
		paramAutoScalerMin: func(p *Plan) map[string]any {
			return integer("Lowest number of worker nodes.", p.Nodes.Lowest, p.Nodes.Highest, p.Nodes.Min)
		},
		paramAutoScalerMax: func(p *Plan) map[string]any {
			return integer("Highest number of worker nodes.", p.Nodes.Lowest, p.Nodes.Highest, p.Nodes.Max)
		},
		paramVolumeSize: func(p *Plan) map[string]any {
			return integer("Size of a worker node's disk in GB.", p.Volume.Smallest, p.Volume.Largest, p.Volume.Size)
		},
		paramMaxSurge: func(p *Plan) map[string]any {
			return integer("How many nodes are added at most while nodes are replaced.", 0, p.Nodes.Highest, p.ZonesCount)
		},
		"maxUnavailable": func(p *Plan) map[string]any {
			return integer("How many nodes may be missing while nodes are replaced.", 0, p.Nodes.Highest, 0)
		},
		paramZones: func(*Plan) map[string]any {
			return property("array", "Zones of the region for the worker nodes.", map[string]any{
				"items": map[string]any{"type": "string", "minLength": 1}, "minItems": 1, "maxItems": mostZones, "uniqueItems": true,
			})
		},
		"purpose": func(p *Plan) map[string]any {
			return property("string", "What the cluster is for.", map[string]any{"enum": purposes(), "default": p.Purpose})
		},
		"administrators": func(*Plan) map[string]any {
			return property("array", "Users who administer the cluster; without any it is the one who orders it.", map[string]any{
				"items": map[string]any{"type": "string", "minLength": 1}, "uniqueItems": true,
			})
		},
		"oidc":       oidcSchema,
		"networking": networkingSchema,
		paramKubeconfig: func(*Plan) map[string]any {
			return property("string", "The kubeconfig of the cluster, in base64. It may name no program and no file.", map[string]any{"minLength": 1})
		},
		"shootName": func(*Plan) map[string]any {
			return property("string", "The name of the cluster where it was made.", map[string]any{"minLength": 1, "maxLength": longestName})
		},
		"shootDomain": func(*Plan) map[string]any {
			return property("string", "The domain of the cluster.", map[string]any{"minLength": 1, "maxLength": longestText})
		},
	}
}

// providerSchema allows the names of providers as they are written for people, and in lower case.
func providerSchema(p *Plan) map[string]any {
	var names []string

	for _, offer := range p.Offers {
		names = append(names, p.providers[offer.Provider].DisplayName)
	}

	for _, offer := range p.Offers {
		if !contains(names, offer.Provider) {
			names = append(names, offer.Provider)
		}
	}

	return property("string", "The infrastructure of the cluster.", map[string]any{"enum": names, "default": names[0]})
}

func regionSchema(p *Plan) map[string]any {
	if p.byArea() {
		return property("string", "The part of the world in which the cluster runs.", map[string]any{"enum": p.areaNames()})
	}

	display, names := map[string]any{}, []string{}

	for _, offer := range p.Offers {
		for _, name := range offer.Regions {
			display[name] = p.providers[offer.Provider].Regions[name].DisplayName
			names = append(names, name)
		}
	}

	// There is no default to be shown: that depends on the platform's region.
	description := "The region of the cluster; else that of the platform's region, else " + p.Offers[0].DefaultRegion + "."

	return property("string", description, map[string]any{"enum": names, "_enumDisplayName": display})
}

func machineSchema(p *Plan) map[string]any {
	offer := p.Offers[0]
	display := map[string]any{}

	for _, name := range offer.Machines {
		display[name] = name + " (" + p.providers[offer.Provider].Machines[name] + ")"
	}

	return property("string", "The type of the worker nodes.", map[string]any{
		"enum": offer.Machines, "default": offer.Machines[0], "_enumDisplayName": display,
	})
}

func property(kind, description string, more map[string]any) map[string]any {
	more["type"], more["description"] = kind, description

	return more
}

func integer(description string, lowest, highest, standard int) map[string]any {
	return property("integer", description, map[string]any{"minimum": lowest, "maximum": highest, "default": standard})
}
