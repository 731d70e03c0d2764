package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Plan is a plan of the service.
type Plan struct {
	planFile

	providers         map[string]providerFile
	kubernetesVersion string
	create            *jsonschema.Schema
}

// MaintenanceVersion is the version that orders and updates may name in maintenance_info.
func (p *Plan) MaintenanceVersion() string { return p.Maintenance.Version }

// takes reports whether an order may name the parameter.
func (p *Plan) takes(parameter string) bool { return contains(p.Parameters, parameter) }

// byArea reports whether the plan's regions are parts of the world.
func (p *Plan) byArea() bool { return len(p.areaNames()) > 0 }

// areaNames lists the areas of all offers, sorted.
func (p *Plan) areaNames() []string {
	names := map[string]bool{}

	for _, offer := range p.Offers {
		for area := range offer.Areas {
			names[area] = true
		}
	}

	return slices.Sorted(maps.Keys(names))
}

// offerOf returns the offer of the provider, or the first one when none is named.
func (p *Plan) offerOf(provider string) offer {
	for _, offer := range p.Offers {
		if strings.EqualFold(offer.Provider, provider) {
			return offer
		}
	}

	return p.Offers[0]
}

func contains(names []string, name string) bool { return slices.Contains(names, name) }
