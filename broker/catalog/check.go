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

	"github.com/google/uuid"
)

// openStack is the provider that has more to say than others.
const openStack = "openstack"

// longestText is how much platforms show of a text, in characters.
const longestText = 255

// problems collects what is wrong. Its lines begin with the place.
type problems []error

func (p *problems) unless(fine bool, format string, args ...any) {
	if !fine {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// text checks what people are shown.
func (p *problems) text(place, text string) {
	p.unless(text != "", "%s is missing", place)
	p.unless(utf8.RuneCountInString(text) <= longestText, "%s is longer than %d characters", place, longestText)
}

// name checks what people type in a shell.
func (p *problems) name(place, name string) {
	fine := regexp.MustCompile(`^[A-Za-z0-9._-]*[A-Za-z0-9][A-Za-z0-9._-]*$`).MatchString(name)
	p.unless(fine, "%s: name %q may only hold letters, digits, dots, dashes and underlines, and not only the last three", place, name)
}

func (p *problems) network(place, cidr string) {
	prefix, err := netip.ParsePrefix(cidr)
	p.unless(err == nil && prefix == prefix.Masked(), "%s: %q is not a network", place, cidr)
}

// check finds everything that is wrong with the files.
func (c *content) check(providers map[string]providerFile, options Options) error {
	var found problems

	found.unless(regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`).MatchString(options.KubernetesVersion),
		"the Kubernetes version %q is not written like 1.34 or 1.34.2", options.KubernetesVersion)
	found.unless(options.OperationTimeout > 0, "the operation timeout %s is not positive", options.OperationTimeout)
	found.name("service", c.service.Name)
	found.text("service: description", c.service.Description)
	found.text("service: displayName", c.service.DisplayName)
	found.unless(len(c.plans) > 0, "the service has no plan")

	for _, cidr := range c.service.ReservedNetworks {
		found.network("service: reservedNetworks", cidr)
	}

	for _, name := range options.EnablePlans {
		known := slices.ContainsFunc(c.plans, func(plan *Plan) bool { return plan.Name == name })
		found.unless(known, "APP_ENABLE_PLANS: there is no plan %q", name)
	}

	c.platforms.check(&found, providers)

	ids, names := map[string]bool{}, map[string]bool{}
	c.checkID(&found, ids, "service", c.service.ID)

	for _, plan := range c.plans {
		place := "plan " + plan.Name
		c.checkID(&found, ids, place, plan.ID)
		found.unless(!names[plan.Name], "%s: there are two plans of this name", place)

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

func (c *content) checkID(found *problems, ids map[string]bool, place, id string) {
	_, err := uuid.Parse(id)
	found.unless(err == nil, "%s: id %q is not a GUID", place, id)
	found.unless(!ids[id], "%s: id %q is used twice", place, id)

	ids[id] = true
}

func (p providerFile) check(found *problems, place, name string) {
	found.unless(p.Name == name, "%s: its name is %q, not that of the file", place, p.Name)
	found.text(place+": displayName", p.DisplayName)
	found.unless(strings.Contains(p.ZoneFormat, "{zone}"), "%s: zoneFormat %q has no {zone}", place, p.ZoneFormat)

	for _, cidr := range []string{p.Networking.Nodes, p.Networking.Pods, p.Networking.Services} {
		found.network(place, cidr)
	}

	for name, region := range p.Regions {
		found.text(place+": display name of region "+name, region.DisplayName)
		found.unless(len(region.Zones) > 0, "%s: region %s has no zone", place, name)
	}

	found.unless((p.OpenStack != nil) == (p.Name == openStack), "%s: openStack is for that provider, and needed there", place)

	for machine, regions := range p.Limited {
		found.unless(p.Machines[machine] != "", "%s: limited: machine %q is not known", place, machine)

		for name, zones := range regions {
			found.unless(len(zones) > 0 && containsAll(p.Regions[name].Zones, zones), "%s: limited: machine %s: region %s has no such zones %v",
				place, machine, name, zones)
		}
	}
}

func (p platformsFile) check(found *problems, providers map[string]providerFile) {
	known := func(name, provider, region string) {
		found.unless(len(providers[provider].Regions[region].Zones) > 0, "platform region %s: %s has no region %q", name, provider, region)
	}

	for digit, provider := range p.ProviderByDigit {
		found.unless(len(digit) == 1 && digit >= "0" && digit <= "9", "platforms: %q is not a digit", digit)
		found.unless(providers[provider].Name != "", "platforms: provider %q is not known", provider)
	}

	for _, name := range slices.Sorted(maps.Keys(p.Regions)) {
		for provider, region := range p.Regions[name].Defaults {
			known(name, provider, region)
		}

		for provider, regions := range p.Regions[name].Only {
			found.unless(len(regions) > 0, "platform region %s: there is no region of %s", name, provider)

			for _, region := range regions {
				known(name, provider, region)
			}
		}
	}
}
