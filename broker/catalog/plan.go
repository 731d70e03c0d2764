package catalog

import (
	"maps"
	"slices"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// Plan is a plan of the service.
type Plan struct {
	planFile

	providers         map[string]providerFile
	platforms         platformsFile
	reserved          []string
	kubernetesVersion string
	oidc              *environment.OIDC
	offered           bool
	onePerAccount     bool
	create, update    form
}

// MaintenanceVersion is the version that orders and updates may name in maintenance_info.
func (p *Plan) MaintenanceVersion() string { return p.Maintenance.Version }

// Offered reports whether new instances may be ordered. Those that exist go on in any case.
func (p *Plan) Offered() bool { return p.offered }

// OnePerAccount reports whether a global account may have one instance of the plan only.
func (p *Plan) OnePerAccount() bool { return p.onePerAccount }

// makeForms makes the schemas of what orders and updates may say.
func (p *Plan) makeForms() error {
	var err error

	if p.create, err = newForm(p.Name+", create", p.properties(p.Parameters, false), p.Parameters, p.Required); err != nil {
		return err
	}

	if p.update, err = newForm(p.Name+", update", p.properties(p.Updates, true), p.Updates, nil); err != nil {
		return err
	}

	p.update.schema["_load_current_config"] = true

	return nil
}

// properties makes the schemas of the parameters. Those of an update have no defaults: what it does not name stays as it is.
func (p *Plan) properties(names []string, update bool) map[string]any {
	properties := map[string]any{}

	for _, name := range names {
		property := parameterSchemas()[name](p)
		if update {
			delete(property, "default")
		}

		properties[name] = property
	}

	return properties
}

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

func contains(names []string, name string) bool { return slices.Contains(names, name) }
