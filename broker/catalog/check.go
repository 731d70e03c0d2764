package catalog

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/Masterminds/semver/v3"
	"github.com/google/uuid"
)

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
	fine := regexp.MustCompile(`^[A-Za-z0-9.-]*[A-Za-z0-9][A-Za-z0-9.-]*$`).MatchString(name)
	p.unless(fine, "%s: name %q may only hold letters, digits, dots and dashes, and not only the last two", place, name)
}

// check finds everything that is wrong with the files.
func (c *Catalog) check(providers map[string]providerFile, options Options) error {
	var found problems

	found.unless(regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`).MatchString(options.KubernetesVersion),
		"the Kubernetes version %q is not written like 1.34 or 1.34.2", options.KubernetesVersion)
	found.unless(options.OperationTimeout > 0, "the operation timeout %s is not positive", options.OperationTimeout)
	found.name("service", c.service.Name)
	found.text("service: description", c.service.Description)
	found.text("service: displayName", c.service.DisplayName)
	found.unless(len(c.plans) > 0, "the service has no plan")

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

func (c *Catalog) checkID(found *problems, ids map[string]bool, place, id string) {
	_, err := uuid.Parse(id)
	found.unless(err == nil, "%s: id %q is not a GUID", place, id)
	found.unless(!ids[id], "%s: id %q is used twice", place, id)

	ids[id] = true
}

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
	found.unless(contains(purposes(), p.Purpose), "%s: purpose %q is not one of %v", place, p.Purpose, purposes())
	found.unless(p.ZonesCount > 0, "%s: zonesCount is not positive", place)
	found.unless(0 < p.Nodes.Min && p.Nodes.Min <= p.Nodes.Max, "%s: nodes need 0 < min <= max", place)
	found.unless(p.Volume.Size > 0, "%s: the volume has no size", place)

	for _, parameter := range slices.Concat(p.Parameters, p.Updates, p.Required) {
		_, known := parameterSchemas()[parameter]
		found.unless(known, "%s: parameter %q is not known", place, parameter)
		found.unless(p.takes(parameter), "%s: parameter %q is none of an order", place, parameter)
	}

	for _, parameter := range p.Updates {
		found.unless(contains(updatable(), parameter), "%s: parameter %q cannot be changed later", place, parameter)
	}

	if p.takes(paramAutoScalerMin) || p.takes(paramAutoScalerMax) {
		found.unless(0 < p.Nodes.Lowest && p.Nodes.Lowest <= p.Nodes.Min && p.Nodes.Max <= p.Nodes.Highest,
			"%s: nodes need 0 < lowest <= min and max <= highest", place)
	}

	if p.takes(paramVolumeSize) {
		found.unless(0 < p.Volume.Smallest && p.Volume.Smallest <= p.Volume.Size && p.Volume.Size <= p.Volume.Largest,
			"%s: the volume needs 0 < smallest <= size <= largest", place)
	}

	p.checkOffers(found, place)
}

// checkTarget looks whether what the plan makes could have been made by the other one too.
func (p *Plan) checkTarget(found *problems, name string, plans []*Plan) {
	index := slices.IndexFunc(plans, func(other *Plan) bool { return other.Name == name })
	if index < 0 || name == p.Name {
		found.unless(false, "plan %s: it cannot become plan %q: there is no other plan of this name", p.Name, name)

		return
	}

	for _, own := range p.Offers {
		matching := slices.ContainsFunc(plans[index].Offers, func(other offer) bool {
			return other.Provider == own.Provider && containsAll(other.Machines, own.Machines)
		})
		found.unless(matching, "plan %s: it cannot become plan %s, which does not have all of its machines on %s",
			p.Name, name, own.Provider)
	}
}

func containsAll(names, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(name string) bool { return !contains(names, name) })
}

func (p *Plan) checkOffers(found *problems, place string) {
	found.unless(len(p.Offers) > 0, "%s offers nothing", place)
	found.unless(len(p.Offers) < 2 || p.takes(paramProvider), "%s: several providers need the parameter %s", place, paramProvider)

	for region, area := range p.Areas.PlatformRegions {
		found.unless(contains(p.areaNames(), area), "%s: the area %q of platform region %s is not offered", place, area, region)
	}

	if p.byArea() {
		found.unless(contains(p.areaNames(), p.Areas.Default), "%s: the default area %q is not offered", place, p.Areas.Default)
	}

	for _, offer := range p.Offers {
		place := fmt.Sprintf("%s on %s", place, offer.Provider)

		provider, known := p.providers[offer.Provider]
		found.unless(known, "%s: the provider is not known", place)
		found.unless(len(offer.Machines) > 0, "%s: there is no machine", place)

		for _, machine := range offer.Machines {
			found.unless(provider.Machines[machine] != "", "%s: machine %q is not known", place, machine)
		}

		for _, region := range offer.Regions {
			found.unless(len(provider.Regions[region].Zones) > 0, "%s: region %q is not known", place, region)
		}

		for _, area := range p.areaNames() {
			region := offer.Areas[area]
			found.unless(len(provider.Regions[region].Zones) > 0, "%s: region %q of area %s is not known", place, region, area)
		}

		if !p.byArea() {
			found.unless(contains(offer.Regions, offer.DefaultRegion), "%s: the default region %q is not offered", place, offer.DefaultRegion)
		}
	}
}

func (p providerFile) check(found *problems, place, name string) {
	found.unless(p.Name == name, "%s: its name is %q, not that of the file", place, p.Name)
	found.text(place+": displayName", p.DisplayName)
	found.unless(p.VolumeType != "", "%s: there is no volumeType", place)
	found.unless(strings.Contains(p.ZoneFormat, "{zone}"), "%s: zoneFormat %q has no {zone}", place, p.ZoneFormat)

	for _, cidr := range []string{p.Networking.Nodes, p.Networking.Pods, p.Networking.Services} {
		prefix, err := netip.ParsePrefix(cidr)
		found.unless(err == nil && prefix == prefix.Masked(), "%s: %q is not a network", place, cidr)
	}

	for name, region := range p.Regions {
		found.text(place+": display name of region "+name, region.DisplayName)
		found.unless(len(region.Zones) > 0, "%s: region %s has no zone", place, name)
	}
}
