package catalog

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
)

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
		found.unless(len(p.Offers) == 0 && contains(p.Required, paramKubeconfig), "%s: it needs the kubeconfig, and offers nothing", place)
		found.unless(containsAll(ownParameters(), p.Parameters), "%s: its parameters have to be some of %v", place, ownParameters())

		return
	}

	found.unless(contains(purposes(), p.Purpose), "%s: purpose %q is not one of %v", place, p.Purpose, purposes())
	found.unless(p.ZonesCount > 0, "%s: zonesCount is not positive", place)
	found.unless(0 < p.Nodes.Min && p.Nodes.Min <= p.Nodes.Max, "%s: nodes need 0 < min <= max", place)

	p.checkBounds(found, place)
	p.checkOffers(found, place)
}

func (p *Plan) checkParameters(found *problems, place string) {
	for _, parameter := range slices.Concat(p.Parameters, p.Updates, p.Required) {
		_, known := parameterSchemas()[parameter]
		found.unless(known, "%s: parameter %q is not known", place, parameter)
		found.unless(p.takes(parameter), "%s: parameter %q is none of an order", place, parameter)
	}

	for _, parameter := range p.Updates {
		found.unless(contains(updatable(), parameter), "%s: parameter %q cannot be changed later", place, parameter)
	}
}

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
	found.unless(len(p.Offers) < 2 || p.takes(paramProvider) != p.ProviderByPlatform,
		"%s: several providers need either the parameter %s or providerByPlatform", place, paramProvider)
	found.unless(len(p.Offers) < 2 || !p.takes(paramMachineType), "%s: machine types of several providers cannot be ordered", place)

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
		found.unless((p.Volume.Size > 0) == (provider.VolumeType != ""), "%s: a volume needs a size and the provider's volumeType, or neither", place)

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
