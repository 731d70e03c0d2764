package catalog

import (
	"maps"
	"slices"
	"strings"
)

// place is where a cluster runs.
type place struct {
	offer    offer
	provider providerFile
	region   string
	euAccess bool
}

// placeOf decides where a cluster runs: what the order names counts first, then the platform's region, then the plan's default.
func (p *Plan) placeOf(given parameters, platformRegion string, wrong *violations) place {
	platform := p.platforms.Regions[platformRegion]
	offer := p.chooseOffer(given.Provider, platformRegion, wrong)
	chosen := place{offer: offer, provider: p.providers[offer.Provider], euAccess: platform.EUAccess}

	allowed, limited := platform.Only[offer.Provider], len(platform.Only) > 0

	switch {
	case p.byArea() && limited && len(allowed) > 0:
		chosen.region = allowed[0]
	case p.byArea():
		chosen.region = offer.Areas[orElse(given.Region, orElse(p.Areas.PlatformRegions[platformRegion], p.Areas.Default))]
	case given.Region != "":
		chosen.region = given.Region
		wrong.unless(contains(offer.Regions, given.Region), paramRegion, ruleOffer, "%q is no region of %s, which is the provider in platform region %s",
			given.Region, chosen.provider.DisplayName, platformRegion)
		wrong.unless(len(allowed) == 0 || contains(allowed, given.Region), paramRegion, ruleOffer,
			"%q is not allowed in platform region %s, but %s", given.Region, platformRegion, strings.Join(allowed, ", "))
	case len(allowed) > 0:
		chosen.region = allowed[0]
	default:
		chosen.region = offer.DefaultRegion
		if usual := platform.Defaults[offer.Provider]; contains(offer.Regions, usual) {
			chosen.region = usual
		}
	}

	return chosen
}

// chooseOffer returns the offer of the provider that counts. What is not allowed in the platform's region is wrong.
func (p *Plan) chooseOffer(given, platformRegion string, wrong *violations) offer {
	only := p.platforms.Regions[platformRegion].Only
	allowed := slices.DeleteFunc(slices.Clone(p.Offers), func(offer offer) bool {
		return len(only) > 0 && len(only[offer.Provider]) == 0
	})

	if len(allowed) == 0 {
		wrong.unless(false, "", ruleOffer, "plan %s is not available in platform region %s, where only %s may be used",
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

	wrong.unless(false, field, ruleOffer, "plan %s is not available on %s in platform region %s", p.Name, wanted, platformRegion)

	return allowed[0]
}

// providerOf returns the provider that the first digit of a platform's region stands for, or an empty text.
func (p platformsFile) providerOf(region string) string {
	for _, char := range region {
		if char >= '0' && char <= '9' {
			return orElse(p.ProviderByDigit[string(char)], string(char))
		}
	}

	return ""
}

// zones lists the full names of the zones of a region in which a machine type is to be had.
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

// has lists the regions in which a machine type is to be had.
func (p providerFile) has(machine string) []string {
	if limited, some := p.Limited[machine]; some {
		return slices.Sorted(maps.Keys(limited))
	}

	return slices.Sorted(maps.Keys(p.Regions))
}
