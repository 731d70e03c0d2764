package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// Plan is a plan of the service. It is immutable and safe for concurrent use.
type Plan struct {
	planFile

	// providers, platforms and reserved belong to the whole catalog. Resolve uses them to choose a location and
	// networks.
	providers map[string]providerFile
	platforms platformsFile
	reserved  []string
	// kubernetesVersion and oidc are settings for new clusters.
	kubernetesVersion string
	oidc              *environment.OIDC
	offered           bool
	onePerAccount     bool
	// schemas are the schemas of parameters.yaml, completed for this plan.
	schemas schemas
	// create and update check the parameters of orders and updates.
	create, update form
}

// MaintenanceVersion returns the only version that orders and updates may have in maintenance_info. Platforms read
// it from the catalog.
func (p *Plan) MaintenanceVersion() string { return p.Maintenance.Version }

// Offered reports whether new instances can be ordered. A plan that is not offered is missing from the published catalog, but its
// existing instances work as before.
func (p *Plan) Offered() bool { return p.offered }

// OnePerAccount reports whether a global account may have only one instance of the plan.
func (p *Plan) OnePerAccount() bool { return p.onePerAccount }

// Exclusive returns the value of Instance.Exclusive: the plan and the account if the plan allows one instance per account, and
// otherwise an empty string. A unique index on this value rejects a second instance that a concurrent request stores after the
// quota was checked.
func (p *Plan) Exclusive(account string) string {
	if !p.onePerAccount {
		return ""
	}

	return p.ID + ":" + account
}

// Skeleton returns the parameters that an order must contain, each with a value of the right type. The value is the default, or
// else the first permitted value. Without either, a number gets its minimum, a boolean gets false, and a list or an object is
// empty. A string gets a placeholder in angle brackets, which the user replaces. The result is empty if an order needs no
// parameters.
func (p *Plan) Skeleton() map[string]any {
	values := map[string]any{}
	properties, _ := p.create.bounds["properties"].(map[string]any)

	for _, name := range p.Required {
		schema, _ := properties[name].(map[string]any)
		permitted, _ := schema["enum"].([]any)

		switch {
		case schema["default"] != nil:
			values[name] = schema["default"]
		case len(permitted) > 0:
			values[name] = permitted[0]
		case schema["type"] == "boolean":
			values[name] = false
		case schema["type"] == "integer" || schema["type"] == "number":
			values[name] = cmp.Or(schema["minimum"], any(0))
		case schema["type"] == "array":
			values[name] = []any{}
		case schema["type"] == "object":
			values[name] = map[string]any{}
		default:
			values[name] = "<" + name + ">"
		}
	}

	return values
}

// makeForms completes and compiles the schemas of orders and updates, and adds upgradeTime to Updates. The plan must have passed
// content.check.
func (p *Plan) makeForms() error {
	p.completeSchemas()

	var updateOnly []string
	if !p.OwnCluster { // the tenant upgrades an own cluster
		updateOnly = []string{paramUpgradeTime}
		p.Updates = slices.Concat(p.Updates, updateOnly)
	}

	var err error
	if p.create, err = newForm(p.Name+", create", p.properties(p.Parameters, false), p.Parameters, p.Required); err != nil {
		return err
	}

	p.create.updateOnly = updateOnly

	if p.update, err = newForm(p.Name+", update", p.properties(p.Updates, true), p.Updates, nil); err != nil {
		return err
	}

	p.update.schema["_load_current_config"] = true

	return nil
}

// properties returns the schemas of the named parameters. Schemas for updates have no defaults: a platform would
// send a default and thereby change a value that the user left out.
func (p *Plan) properties(names []string, update bool) map[string]any {
	properties := map[string]any{}

	for _, name := range names {
		property := maps.Clone(p.schemas[name])
		if update {
			delete(property, "default")
		}

		properties[name] = property
	}

	return properties
}

// takes reports whether orders of the plan may contain the parameter.
func (p *Plan) takes(parameter string) bool { return slices.Contains(p.Parameters, parameter) }

// byArea reports whether the plan's regions are parts of the world.
func (p *Plan) byArea() bool { return len(p.areaNames()) > 0 }

// areaNames returns the areas of all offers, sorted.
func (p *Plan) areaNames() []string {
	names := map[string]bool{}

	for _, offer := range p.Offers {
		for area := range offer.Areas {
			names[area] = true
		}
	}

	return slices.Sorted(maps.Keys(names))
}
