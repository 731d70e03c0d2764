package catalog

import (
	"maps"
	"slices"
)

// Regions returns the regions of the providers in which the plan creates clusters, sorted. It is empty for plans whose clusters
// the tenants bring.
func (p *Plan) Regions() []string {
	names := map[string]bool{}

	for _, offer := range p.Offers {
		for _, name := range offer.Regions {
			names[name] = true
		}

		for _, name := range offer.Areas {
			names[name] = true
		}

		// If the platform region limits the regions, these take precedence over the areas of the plan.
		if p.byArea() {
			for _, platform := range p.platforms.Regions {
				for _, name := range platform.Only[offer.Provider] {
					names[name] = true
				}
			}
		}
	}

	return slices.Sorted(maps.Keys(names))
}

// Covers reports whether the plan creates clusters of the provider in a region of the provider.
func (p *Plan) Covers(provider, region string) bool {
	return !p.OwnCluster && slices.Contains(p.Regions(), region) &&
		slices.ContainsFunc(p.Offers, func(offer offer) bool { return offer.Provider == provider })
}

// ServiceID returns the ID of the service.
func (c *Catalog) ServiceID() string { return c.current.Load().service.ID }

// ServiceName returns the name of the service on platforms.
func (c *Catalog) ServiceName() string { return c.current.Load().service.Name }

// Plans returns all plans, in the order of the catalog.
func (c *Catalog) Plans() []*Plan { return slices.Clone(c.current.Load().plans) }
