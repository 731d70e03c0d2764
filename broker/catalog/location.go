package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// location is the provider and the region of a cluster.
type location struct {
	offer    offer
	provider providerFile
	// region is the provider's name for the region, such as eu-central-1.
	region string
	// euAccess is the euAccess setting of the platform region. The provider's region does not affect it.
	euAccess bool
}

// locate chooses the location of a cluster: the requested one, else the default of the platform region, else the default of the
// plan. In a plan with areas, the allowed regions of the platform region take precedence over the requested area. If the plan or
// the platform region does not allow the requested location, locate adds a violation, and callers must not use the result.
func (p *Plan) locate(given parameters, platformRegion string, violations *Violations) location {
	platform := p.platforms.Regions[platformRegion]
	offer := p.chooseOffer(given.Provider, platformRegion, violations)
	chosen := location{offer: offer, provider: p.providers[offer.Provider], euAccess: platform.EUAccess}

	allowed, limited := platform.Only[offer.Provider], len(platform.Only) > 0

	switch {
	case p.byArea() && limited && len(allowed) > 0:
		chosen.region = allowed[0]
	case p.byArea():
		chosen.region = offer.Areas[cmp.Or(given.Region, p.Areas.PlatformRegions[platformRegion], p.Areas.Default)]
	case given.Region != "":
		chosen.region = given.Region
		violations.require(slices.Contains(offer.Regions, given.Region), paramRegion, ruleOffer, "%q is not a region of %s, the provider in platform region %s",
			given.Region, chosen.provider.DisplayName, platformRegion)
		violations.require(len(allowed) == 0 || slices.Contains(allowed, given.Region), paramRegion, ruleOffer,
			"%q is not allowed in platform region %s, which allows only %s", given.Region, platformRegion, strings.Join(allowed, ", "))
	case len(allowed) > 0:
		chosen.region = allowed[0]
	default:
		chosen.region = offer.DefaultRegion
		if usual := platform.Defaults[offer.Provider]; slices.Contains(offer.Regions, usual) {
			chosen.region = usual
		}
	}

	return chosen
}

// chooseOffer returns the offer of the requested provider, or else of the platform region's provider, or else the first allowed
// offer. If the plan has no offer for the provider, or the platform region does not allow the provider, it adds a violation.
func (p *Plan) chooseOffer(given, platformRegion string, violations *Violations) offer {
	only := p.platforms.Regions[platformRegion].Only
	allowed := slices.DeleteFunc(slices.Clone(p.Offers), func(offer offer) bool {
		return len(only) > 0 && len(only[offer.Provider]) == 0
	})

	if len(allowed) == 0 {
		violations.require(false, "", ruleOffer, "plan %s is not available in platform region %s, where the allowed providers are %s",
			p.Name, platformRegion, strings.Join(slices.Sorted(maps.Keys(only)), ", "))

		return p.Offers[0]
	}

	wanted, field := given, paramProvider
	if p.ProviderByPlatform {
		wanted, field = p.platforms.providerOf(platformRegion), ""
	}

	for _, offer := range allowed {
		if wanted == "" || strings.EqualFold(offer.Provider, wanted) {
			return offer
		}
	}

	violations.require(false, field, ruleOffer, "plan %s is not available on %s in platform region %s", p.Name, wanted, platformRegion)

	return allowed[0]
}

// providerOf returns the provider for the first digit in the name of a platform region, such as aws for cf-us10. If the
// digit has no provider, it returns a placeholder for the error message. If the name has no digit, it returns an empty
// string.
func (p platformsFile) providerOf(region string) string {
	for _, char := range region {
		if char >= '0' && char <= '9' {
			return cmp.Or(p.ProviderByDigit[string(char)], "an unknown provider")
		}
	}

	return ""
}

// zones returns the full names of the region's zones that offer the machine type, in the order in which the provider's file lists
// them. If the machine type is empty, it returns all zones.
func (p providerFile) zones(region, machine string) []string {
	letters := p.Regions[region].Zones
	if limited, some := p.Limited[machine]; some {
		letters = limited[region]
	}

	names := make([]string, 0, len(letters))
	for _, zone := range letters {
		names = append(names, strings.ReplaceAll(strings.ReplaceAll(p.ZoneFormat, "{region}", region), "{zone}", zone))
	}

	return names
}

// regionsWith returns the regions that offer the machine type.
func (p providerFile) regionsWith(machine string) []string {
	if limited, some := p.Limited[machine]; some {
		return slices.Sorted(maps.Keys(limited))
	}

	return slices.Sorted(maps.Keys(p.Regions))
}
