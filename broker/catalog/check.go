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

// maxText is the maximum length, in characters, of a string that platforms show.
const maxText = 255

// maxImage is the maximum length of the icon's URL in bytes. Platforms store it with the metadata of the
// service and send it with every list of services.
const maxImage = 16 << 10

// problems collects errors. Each error starts with the place of the mistake, such as "plan trial: description".
type problems []error

// require adds the error unless the condition is true.
func (p *problems) require(ok bool, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// text checks a string that platforms show: it must be neither empty nor longer than maxText.
func (p *problems) text(place, text string) {
	p.require(text != "", "%s is missing", place)
	p.require(utf8.RuneCountInString(text) <= maxText, "%s is longer than %d characters", place, maxText)
}

// name checks a name that users type in commands. Only characters without a special meaning in shells are valid.
func (p *problems) name(place, name string) {
	ok := regexp.MustCompile(`^[A-Za-z0-9._-]*[A-Za-z0-9][A-Za-z0-9._-]*$`).MatchString(name)
	p.require(ok, "%s: name %q may contain only letters, digits, dots, dashes and underscores, and needs a letter or a digit", place, name)
}

// network checks an address range in CIDR notation. All bits after the prefix must be zero.
func (p *problems) network(place, cidr string) {
	prefix, err := netip.ParsePrefix(cidr)
	p.require(err == nil && prefix == prefix.Masked(), "%s: %q is not a network", place, cidr)
}

// check returns all errors of the files together, so that an operator does not have to restart the broker after each fix.
func (c *content) check(providers map[string]providerFile, options Options) error {
	var errs problems

	errs.require(options.KymaVersion == "" || kymaVersions.MatchString(options.KymaVersion), "APP_KYMA_VERSION: %q is not a version", options.KymaVersion)
	errs.require(options.KymaVersion != "" || !options.KymaVersionOnDemand,
		"APP_ENABLE_ON_DEMAND_VERSION requires APP_KYMA_VERSION, the default version")

	errs.require(regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`).MatchString(options.KubernetesVersion),
		"APP_KUBERNETES_VERSION: %q does not have the form 1.34 or 1.34.2", options.KubernetesVersion)
	errs.require(options.OperationTimeout > 0, "APP_OPERATION_TIMEOUT: %s is not positive", options.OperationTimeout)
	errs.name("service", c.service.Name)
	errs.text("service: description", c.service.Description)
	errs.text("service: displayName", c.service.DisplayName)
	errs.require(c.service.ImageURL == "" || usableImage(c.service.ImageURL),
		"service: imageUrl must be an https address or a data URI of an image, of at most %d bytes", maxImage)
	errs.require(len(c.plans) > 0, "service: plans is empty")

	for _, cidr := range c.service.ReservedNetworks {
		errs.network("service: reservedNetworks", cidr)
	}

	for _, name := range options.EnablePlans {
		known := slices.ContainsFunc(c.plans, func(plan *Plan) bool { return plan.Name == name })
		errs.require(known, "APP_ENABLE_PLANS: plan %q does not exist", name)
	}

	c.platforms.check(&errs, providers)

	windows, err := c.service.MaintenancePolicy.Compile()
	errs.require(err == nil, "service: maintenancePolicy: %v", err)

	c.windows = windows

	ids, names := map[string]bool{}, map[string]bool{}
	c.checkID(&errs, ids, "service", c.service.ID)

	for i, plan := range c.plans {
		place := "plan " + plan.Name
		file := c.service.Plans[i]
		errs.require(plan.Name == file, "%s: the name %q differs from the file name plans/%s.yaml", place, plan.Name, file)
		c.checkID(&errs, ids, place, plan.ID)
		errs.require(!names[plan.Name], "%s: another plan has the same name", place)

		names[plan.Name] = true

		plan.check(&errs, place)

		err := plan.MaintenanceWindow.Validate()
		errs.require(err == nil, "%s: maintenanceWindow: %v", place, err)

		plan.checkAgent(&errs, place, options.KymaInstaller)
	}

	for _, plan := range c.plans {
		for _, name := range plan.BecomesPlans {
			plan.checkTarget(&errs, name, c.plans)
		}
	}

	for name, provider := range providers {
		provider.check(&errs, "provider "+name, name)
	}

	return errors.Join(errs...)
}

// usableImage reports whether the address is an https URL or an image as a data URI, and is not longer than maxImage. A
// marketplace that is served over TLS may fail to load images from other addresses.
func usableImage(address string) bool {
	return len(address) <= maxImage && (strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "data:image/"))
}

// checkID checks that an ID is a GUID and unique among the IDs of the service and its plans, as Cloud Foundry
// requires.
func (c *content) checkID(errs *problems, ids map[string]bool, place, id string) {
	_, err := uuid.Parse(id)
	errs.require(err == nil, "%s: ID %q is not a GUID", place, id)
	errs.require(!ids[id], "%s: ID %q is used twice", place, id)

	ids[id] = true
}

// check adds an error for each mistake in the plan's file. A plan for clusters that tenants bring has no offers, so the rules for
// offers, nodes and volumes do not apply to it.
func (p *Plan) check(errs *problems, place string) {
	errs.name(place, p.Name)
	errs.text(place+": description", p.Description)
	errs.text(place+": displayName", p.DisplayName)

	for _, bullet := range p.Bullets {
		errs.text(place+": bullet", bullet)
	}

	_, err := semver.StrictNewVersion(p.Maintenance.Version)
	errs.require(err == nil, "%s: maintenance version %q is not a semantic version", place, p.Maintenance.Version)
	errs.text(place+": maintenance description", p.Maintenance.Description)

	for _, cost := range p.Costs {
		errs.require(len(cost.Amount) > 0 && cost.Unit != "", "%s: a cost needs an amount and a unit", place)
	}

	p.checkParameters(errs, place)
	p.checkKyma(errs, place)

	if p.OwnCluster {
		errs.require(len(p.Offers) == 0 && slices.Contains(p.Required, paramKubeconfig),
			"%s: a plan with ownCluster must require the kubeconfig and have no offers", place)
		errs.require(containsAll(ownParameters(), p.Parameters), "%s: a plan with ownCluster can have only the parameters %v", place, ownParameters())

		return
	}

	errs.require(slices.Contains(purposes(), p.Purpose), "%s: purpose %q is not one of %v", place, p.Purpose, purposes())
	errs.require(p.ZonesCount > 0, "%s: zonesCount is not positive", place)
	errs.require(0 < p.Nodes.Min && p.Nodes.Min <= p.Nodes.Max, "%s: nodes need 0 < min <= max", place)

	p.checkBounds(errs, place)
	p.checkOffers(errs, place)
}

// checkParameters checks that all listed parameters exist, that Required and Updates are subsets of Parameters, and
// that updatable contains all of Updates.
func (p *Plan) checkParameters(errs *problems, place string) {
	for _, parameter := range slices.Concat(p.Parameters, p.Updates, p.Required) {
		errs.require(p.schemas[parameter] != nil, "%s: parameter %q does not exist", place, parameter)
	}

	for _, parameter := range p.Updates {
		errs.require(p.takes(parameter), "%s: parameter %q is in updates, but not in parameters", place, parameter)
	}

	for _, parameter := range p.Required {
		errs.require(p.takes(parameter), "%s: parameter %q is in required, but not in parameters", place, parameter)
	}

	for _, parameter := range p.Updates {
		errs.require(slices.Contains(updatable(), parameter), "%s: parameter %q cannot be changed by updates", place, parameter)
	}
}

// checkBounds checks that the defaults of the plan lie within the bounds for orders.
func (p *Plan) checkBounds(errs *problems, place string) {
	if p.takes(paramAutoScalerMin) || p.takes(paramAutoScalerMax) {
		errs.require(0 < p.Nodes.Lowest && p.Nodes.Lowest <= p.Nodes.Min && p.Nodes.Max <= p.Nodes.Highest,
			"%s: nodes need 0 < lowest <= min and max <= highest", place)
	}

	if p.takes(paramVolumeSize) {
		errs.require(0 < p.Volume.Smallest && p.Volume.Smallest <= p.Volume.Size && p.Volume.Size <= p.Volume.Largest,
			"%s: the volume needs 0 < smallest <= size <= largest", place)
	}
}

// checkTarget checks that the named plan offers all machine types of this plan on the same providers, and has all Kyma modules of
// this plan. A cluster keeps its machine type and modules when its plan changes.
func (p *Plan) checkTarget(errs *problems, name string, plans []*Plan) {
	index := slices.IndexFunc(plans, func(other *Plan) bool { return other.Name == name })
	if index < 0 || name == p.Name {
		errs.require(false, "plan %s: becomesPlans: %q is not the name of another plan", p.Name, name)

		return
	}

	plans[index].checkModulesOf(errs, p)

	for _, own := range p.Offers {
		matching := slices.ContainsFunc(plans[index].Offers, func(other offer) bool {
			return other.Provider == own.Provider && containsAll(other.Machines, own.Machines)
		})
		errs.require(matching, "plan %s: instances cannot be changed to plan %s, which lacks some of this plan's machine types on %s",
			p.Name, name, own.Provider)
	}
}

// containsAll reports whether names contains every wanted name.
func containsAll(names, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(names, name) })
}

// checkOffers checks that the offers refer to existing providers, regions and machine types, that the default regions
// and areas are offered, and that a plan with several providers can choose one for every order.
func (p *Plan) checkOffers(errs *problems, place string) {
	errs.require(len(p.Offers) > 0, "%s: the plan has no offers", place)
	errs.require(len(p.Offers) < 2 || p.takes(paramProvider) != p.ProviderByPlatform,
		"%s: plans with several providers need either the %s parameter or providerByPlatform", place, paramProvider)
	errs.require(len(p.Offers) < 2 || !p.takes(paramMachineType), "%s: plans with several providers cannot have the machineType parameter", place)

	for region, area := range p.Areas.PlatformRegions {
		errs.require(slices.Contains(p.areaNames(), area), "%s: the area %q of platform region %s has no offer", place, area, region)
	}

	if p.byArea() {
		errs.require(slices.Contains(p.areaNames(), p.Areas.Default), "%s: the default area %q has no offer", place, p.Areas.Default)
	}

	for _, offer := range p.Offers {
		place := fmt.Sprintf("%s on %s", place, offer.Provider)

		provider, known := p.providers[offer.Provider]
		errs.require(known, "%s: the provider does not exist", place)
		errs.require(len(offer.Machines) > 0, "%s: the offer lists no machine types", place)
		errs.require((p.Volume.Size > 0) == (provider.VolumeType != ""), "%s: a volume needs both a size and the provider's volumeType", place)

		for _, machine := range offer.Machines {
			errs.require(provider.Machines[machine] != "", "%s: the provider has no machine type %q", place, machine)
		}

		for _, region := range offer.Regions {
			errs.require(len(provider.Regions[region].Zones) > 0, "%s: the provider has no region %q", place, region)
		}

		for _, area := range p.areaNames() {
			region := offer.Areas[area]
			errs.require(len(provider.Regions[region].Zones) > 0, "%s: the provider has no region %q, which area %s uses", place, region, area)
		}

		if !p.byArea() {
			errs.require(slices.Contains(offer.Regions, offer.DefaultRegion), "%s: the default region %q is not offered", place, offer.DefaultRegion)
		}
	}
}

// check adds an error for each mistake in the provider's file.
func (p providerFile) check(errs *problems, place, name string) {
	errs.require(p.Name == name, "%s: the name %q differs from the file name", place, p.Name)
	errs.text(place+": displayName", p.DisplayName)
	errs.require(strings.Contains(p.ZoneFormat, "{zone}"), "%s: zoneFormat %q has no {zone}", place, p.ZoneFormat)

	for _, cidr := range []string{p.Networking.Nodes, p.Networking.Pods, p.Networking.Services} {
		errs.network(place, cidr)
	}

	for name, region := range p.Regions {
		errs.text(place+": display name of region "+name, region.DisplayName)
		errs.require(len(region.Zones) > 0, "%s: region %s has no zone", place, name)
	}

	errs.require((p.OpenStack != nil) == (p.Name == openStack), "%s: openStack must be set for the provider openstack and for no other", place)

	for machine, regions := range p.Limited {
		errs.require(p.Machines[machine] != "", "%s: limited: the provider has no machine type %q", place, machine)

		for name, zones := range regions {
			errs.require(len(zones) > 0 && containsAll(p.Regions[name].Zones, zones), "%s: limited: machine %s: region %s lacks some of the zones %v",
				place, machine, name, zones)
		}
	}
}

// check adds an error for each region or provider that does not exist. Without this check, a wrong name would be noticed only
// when an order for the platform region arrives.
func (p platformsFile) check(errs *problems, providers map[string]providerFile) {
	known := func(name, provider, region string) {
		errs.require(len(providers[provider].Regions[region].Zones) > 0, "platform region %s: %s has no region %q", name, provider, region)
	}

	for digit, provider := range p.ProviderByDigit {
		errs.require(len(digit) == 1 && digit >= "0" && digit <= "9", "platforms: %q is not a digit", digit)
		errs.require(providers[provider].Name != "", "platforms: provider %q does not exist", provider)
	}

	for _, name := range slices.Sorted(maps.Keys(p.Regions)) {
		for provider, region := range p.Regions[name].Defaults {
			known(name, provider, region)
		}

		for provider, regions := range p.Regions[name].Only {
			errs.require(len(regions) > 0, "platform region %s: the list of regions allowed for %s is empty", name, provider)

			for _, region := range regions {
				known(name, provider, region)
			}
		}
	}
}
