package catalog

import (
	"maps"
	"slices"
)

// Regions returns the names of the provider regions in which the plan creates clusters, sorted. The result is empty for plans
// with OwnCluster, because tenants bring these clusters.
func (p *Plan) Regions() []string {
	names := map[string]bool{}

	for _, offer := range p.Offers {
		for _, name := range offer.Regions {
			names[name] = true
		}

		for _, name := range offer.Areas {
			names[name] = true
		}

		// In a plan with areas, a cluster is created in a region that the platform region allows, even if this region is not in
		// the requested area.
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

// Covers reports whether the plan creates clusters in the given region of the given provider.
func (p *Plan) Covers(provider, region string) bool {
	return !p.OwnCluster && slices.Contains(p.Regions(), region) &&
		slices.ContainsFunc(p.Offers, func(offer offer) bool { return offer.Provider == provider })
}

// ServiceID returns the ID of the service.
func (c *Catalog) ServiceID() string { return c.current.Load().service.ID }

// ServiceName returns the name under which platforms offer the service.
func (c *Catalog) ServiceName() string { return c.current.Load().service.Name }

// Plans returns all plans, in the order of the catalog.
func (c *Catalog) Plans() []*Plan { return slices.Clone(c.current.Load().plans) }
