package catalog

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/Masterminds/semver/v3"
	"github.com/google/uuid"
)

// openStack is the name of a provider in Gardener. Only this provider has additional settings (providerFile.OpenStack).
const openStack = "openstack"

// maxText is the maximum length of texts that platforms show, in characters.
const maxText = 255

// maxImage is the maximum length of the icon's URL in bytes. Platforms store it with the metadata of the
// service and send it with every list of services.
const maxImage = 16 << 10

// problems collects errors. Each error starts with the place of the mistake, such as "plan trial: description".
type problems []error

// unless adds the error if the condition is false.
func (p *problems) unless(fine bool, format string, args ...any) {
	if !fine {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// text checks a text that platforms show: it must not be empty or longer than maxText.
func (p *problems) text(place, text string) {
	p.unless(text != "", "%s is missing", place)
	p.unless(utf8.RuneCountInString(text) <= maxText, "%s is longer than %d characters", place, maxText)
}

// name checks a name that users type in commands. Only characters without a special meaning in shells are valid.
func (p *problems) name(place, name string) {
	fine := regexp.MustCompile(`^[A-Za-z0-9._-]*[A-Za-z0-9][A-Za-z0-9._-]*$`).MatchString(name)
	p.unless(fine, "%s: name %q may contain only letters, digits, dots, dashes and underscores, and needs a letter or a digit", place, name)
}

// network checks an address range in CIDR notation. All bits after the prefix must be zero.
func (p *problems) network(place, cidr string) {
	prefix, err := netip.ParsePrefix(cidr)
	p.unless(err == nil && prefix == prefix.Masked(), "%s: %q is not a network", place, cidr)
}

// check returns all errors of the files together, so that an operator need not restart the broker after each fix.
func (c *content) check(providers map[string]providerFile, options Options) error {
	var found problems

	found.unless(regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`).MatchString(options.KubernetesVersion),
		"the Kubernetes version %q does not have the form 1.34 or 1.34.2", options.KubernetesVersion)
	found.unless(options.OperationTimeout > 0, "the operation timeout %s is not positive", options.OperationTimeout)
	found.name("service", c.service.Name)
	found.text("service: description", c.service.Description)
	found.text("service: displayName", c.service.DisplayName)
	found.unless(c.service.ImageURL == "" || usableImage(c.service.ImageURL), "service: imageUrl must be an https address or a data URI of an image, of at most %d bytes", maxImage)
	found.unless(len(c.plans) > 0, "the service has no plan")

	for _, cidr := range c.service.ReservedNetworks {
		found.network("service: reservedNetworks", cidr)
	}

	for _, name := range options.EnablePlans {
		known := slices.ContainsFunc(c.plans, func(plan *Plan) bool { return plan.Name == name })
		found.unless(known, "APP_ENABLE_PLANS: plan %q does not exist", name)
	}

	c.platforms.check(&found, providers)

	ids, names := map[string]bool{}, map[string]bool{}
	c.checkID(&found, ids, "service", c.service.ID)

	for _, plan := range c.plans {
		place := "plan " + plan.Name
		c.checkID(&found, ids, place, plan.ID)
		found.unless(!names[plan.Name], "%s: another plan has the same name", place)

		names[plan.Name] = true

		plan.check(&found, place)
	}

	for _, plan := range c.plans {
		for _, name := range plan.BecomesPlans {
			plan.checkTarget(&found, name, c.plans)
		}
	}

	for name, provider := range providers {
		provider.check(&found, "provider "+name, name)
	}

	return errors.Join(found...)
}

// usableImage reports whether the address is an https URL or the data URI of an image, and not longer than maxImage.
// Browsers that show a marketplace over TLS may block images from other addresses.
func usableImage(address string) bool {
	return len(address) <= maxImage && (strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "data:image/"))
}

// checkID checks that an ID is a GUID and unique among the IDs of the service and its plans, as Cloud Foundry
// requires.
func (c *content) checkID(found *problems, ids map[string]bool, place, id string) {
	_, err := uuid.Parse(id)
	found.unless(err == nil, "%s: ID %q is not a GUID", place, id)
	found.unless(!ids[id], "%s: ID %q is used twice", place, id)

	ids[id] = true
}

// check reports the errors of a plan. A plan for clusters that tenants bring has no offers, so the rules for
// offers, nodes and volumes do not apply to it.
func (p *Plan) check(found *problems, place string) {
	found.name(place, p.Name)
	found.text(place+": description", p.Description)
	found.text(place+": displayName", p.DisplayName)

	for _, bullet := range p.Bullets {
		found.text(place+": bullet", bullet)
	}

	_, err := semver.StrictNewVersion(p.Maintenance.Version)
	found.unless(err == nil, "%s: maintenance version %q is not a semantic version", place, p.Maintenance.Version)
	found.text(place+": maintenance description", p.Maintenance.Description)

	for _, cost := range p.Costs {
		found.unless(len(cost.Amount) > 0 && cost.Unit != "", "%s: a cost needs an amount and a unit", place)
	}

	p.checkParameters(found, place)

	if p.OwnCluster {
		found.unless(len(p.Offers) == 0 && slices.Contains(p.Required, paramKubeconfig), "%s: a plan with ownCluster must require the kubeconfig and have no offers", place)
		found.unless(containsAll(ownParameters(), p.Parameters), "%s: a plan with ownCluster can have only the parameters %v", place, ownParameters())

		return
	}

	found.unless(slices.Contains(purposes(), p.Purpose), "%s: purpose %q is not one of %v", place, p.Purpose, purposes())
	found.unless(p.ZonesCount > 0, "%s: zonesCount is not positive", place)
	found.unless(0 < p.Nodes.Min && p.Nodes.Min <= p.Nodes.Max, "%s: nodes need 0 < min <= max", place)

	p.checkBounds(found, place)
	p.checkOffers(found, place)
}

// checkParameters checks that the plan's parameters exist, and that Gardener can change the parameters of updates
// in a running cluster.
func (p *Plan) checkParameters(found *problems, place string) {
	for _, parameter := range slices.Concat(p.Parameters, p.Updates, p.Required) {
		found.unless(p.schemas[parameter] != nil, "%s: parameter %q does not exist", place, parameter)
		found.unless(p.takes(parameter), "%s: parameter %q of updates must also be a parameter of orders", place, parameter)
	}

	for _, parameter := range p.Updates {
		found.unless(slices.Contains(updatable(), parameter), "%s: parameter %q cannot be changed by updates", place, parameter)
	}
}

// checkBounds checks that the defaults of the plan lie within the bounds for orders.
func (p *Plan) checkBounds(found *problems, place string) {
	if p.takes(paramAutoScalerMin) || p.takes(paramAutoScalerMax) {
		found.unless(0 < p.Nodes.Lowest && p.Nodes.Lowest <= p.Nodes.Min && p.Nodes.Max <= p.Nodes.Highest,
			"%s: nodes need 0 < lowest <= min and max <= highest", place)
	}

	if p.takes(paramVolumeSize) {
		found.unless(0 < p.Volume.Smallest && p.Volume.Smallest <= p.Volume.Size && p.Volume.Size <= p.Volume.Largest,
			"%s: the volume needs 0 < smallest <= size <= largest", place)
	}
}

// checkTarget checks that the named plan offers all machine types of this plan on the same providers, because a
// cluster keeps its machine type when its plan changes.
func (p *Plan) checkTarget(found *problems, name string, plans []*Plan) {
	index := slices.IndexFunc(plans, func(other *Plan) bool { return other.Name == name })
	if index < 0 || name == p.Name {
		found.unless(false, "plan %s: it cannot be changed to plan %q, which does not exist", p.Name, name)

		return
	}

	for _, own := range p.Offers {
		matching := slices.ContainsFunc(plans[index].Offers, func(other offer) bool {
			return other.Provider == own.Provider && containsAll(other.Machines, own.Machines)
		})
		found.unless(matching, "plan %s: it cannot be changed to plan %s, which lacks some of its machine types on %s",
			p.Name, name, own.Provider)
	}
}

// containsAll reports whether names contains every wanted name.
func containsAll(names, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(names, name) })
}

// checkOffers checks that the offers refer to existing regions and machine types of their providers. It also checks
// that an order without parameters gets a provider and a region for every platform region.
func (p *Plan) checkOffers(found *problems, place string) {
	found.unless(len(p.Offers) > 0, "%s: the plan has no offers", place)
	found.unless(len(p.Offers) < 2 || p.takes(paramProvider) != p.ProviderByPlatform,
		"%s: plans with several providers need either the parameter %s or providerByPlatform", place, paramProvider)
	found.unless(len(p.Offers) < 2 || !p.takes(paramMachineType), "%s: plans with several providers cannot have the parameter machineType", place)

	for region, area := range p.Areas.PlatformRegions {
		found.unless(slices.Contains(p.areaNames(), area), "%s: the area %q of platform region %s has no offer", place, area, region)
	}

	if p.byArea() {
		found.unless(slices.Contains(p.areaNames(), p.Areas.Default), "%s: the default area %q has no offer", place, p.Areas.Default)
	}

	for _, offer := range p.Offers {
		place := fmt.Sprintf("%s on %s", place, offer.Provider)

		provider, known := p.providers[offer.Provider]
		found.unless(known, "%s: the provider does not exist", place)
		found.unless(len(offer.Machines) > 0, "%s: the offer lists no machine types", place)
		found.unless((p.Volume.Size > 0) == (provider.VolumeType != ""), "%s: a volume needs both a size and the provider's volumeType", place)

		for _, machine := range offer.Machines {
			found.unless(provider.Machines[machine] != "", "%s: the provider has no machine type %q", place, machine)
		}

		for _, region := range offer.Regions {
			found.unless(len(provider.Regions[region].Zones) > 0, "%s: the provider has no region %q", place, region)
		}

		for _, area := range p.areaNames() {
			region := offer.Areas[area]
			found.unless(len(provider.Regions[region].Zones) > 0, "%s: the provider has no region %q, which area %s uses", place, region, area)
		}

		if !p.byArea() {
			found.unless(slices.Contains(offer.Regions, offer.DefaultRegion), "%s: the default region %q is not offered", place, offer.DefaultRegion)
		}
	}
}

// check reports the errors of a provider's file.
func (p providerFile) check(found *problems, place, name string) {
	found.unless(p.Name == name, "%s: the name %q differs from the name of the file", place, p.Name)
	found.text(place+": displayName", p.DisplayName)
	found.unless(strings.Contains(p.ZoneFormat, "{zone}"), "%s: zoneFormat %q has no {zone}", place, p.ZoneFormat)

	for _, cidr := range []string{p.Networking.Nodes, p.Networking.Pods, p.Networking.Services} {
		found.network(place, cidr)
	}

	for name, region := range p.Regions {
		found.text(place+": display name of region "+name, region.DisplayName)
		found.unless(len(region.Zones) > 0, "%s: region %s has no zone", place, name)
	}

	found.unless((p.OpenStack != nil) == (p.Name == openStack), "%s: openStack must be set for the provider openstack and for no other", place)

	for machine, regions := range p.Limited {
		found.unless(p.Machines[machine] != "", "%s: limited: the provider has no machine type %q", place, machine)

		for name, zones := range regions {
			found.unless(len(zones) > 0 && containsAll(p.Regions[name].Zones, zones), "%s: limited: machine %s: region %s does not have all zones of %v",
				place, machine, name, zones)
		}
	}
}

// check reports regions and providers that do not exist. Without this check, a wrong name would be noticed only
// when an order comes from the platform region.
func (p platformsFile) check(found *problems, providers map[string]providerFile) {
	known := func(name, provider, region string) {
		found.unless(len(providers[provider].Regions[region].Zones) > 0, "platform region %s: %s has no region %q", name, provider, region)
	}

	for digit, provider := range p.ProviderByDigit {
		found.unless(len(digit) == 1 && digit >= "0" && digit <= "9", "platforms: %q is not a digit", digit)
		found.unless(providers[provider].Name != "", "platforms: provider %q does not exist", provider)
	}

	for _, name := range slices.Sorted(maps.Keys(p.Regions)) {
		for provider, region := range p.Regions[name].Defaults {
			known(name, provider, region)
		}

		for provider, regions := range p.Regions[name].Only {
			found.unless(len(regions) > 0, "platform region %s: the list of allowed regions of %s is empty", name, provider)

			for _, region := range regions {
				known(name, provider, region)
			}
		}
	}
}
