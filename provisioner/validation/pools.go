package validation

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const (
	// maxPools is the maximum number of additional worker pools.
	maxPools = 50
	// maxPoolName is Gardener's limit, in characters: the name of a pool is part of the names of its machines.
	maxPoolName = 15
)

// machines validates the machines of a pool. at is the prefix of the pool's field paths; it is empty for the first pool, whose
// fields are part of the cluster's configuration. A disk is optional; its type and size must be set together. On OpenStack the
// machine type determines the disk.
func (p *problems) machines(at string, pool *spec.WorkerPool, provider string) {
	p.present(at+"machineType", pool.MachineType)

	p.addIf(isSet(pool.MachineImageVersion) && !isSet(pool.MachineImage),
		at+"machineImageVersion", "requires machineImage")

	if provider == openstack {
		p.addIf(isSet(pool.DiskType) || pool.VolumeSizeGB != nil,
			at+"diskType", "and volumeSizeGB cannot be chosen with openstack")

		return
	}

	p.addIf(isSet(pool.DiskType) != (pool.VolumeSizeGB != nil), at+"diskType", "and volumeSizeGB must be set together")

	if pool.VolumeSizeGB != nil {
		p.count(at+"volumeSizeGB", *pool.VolumeSizeGB, 1)
	}
}

// workers validates the size of a pool. A rolling update replaces machines: it needs a surge machine, or permission to remove a
// machine before its replacement is ready.
func (p *problems) workers(at string, pool *spec.WorkerPool) {
	p.count(at+"autoScalerMin", pool.AutoScalerMin, 0)
	p.count(at+"autoScalerMax", pool.AutoScalerMax, 1)
	p.count(at+"maxSurge", pool.MaxSurge, 0)
	p.count(at+"maxUnavailable", pool.MaxUnavailable, 0)

	p.addIf(pool.AutoScalerMin > pool.AutoScalerMax, at+"autoScalerMin", "must not be more than autoScalerMax")

	p.addIf(pool.MaxSurge == 0 && pool.MaxUnavailable == 0,
		at+"maxSurge", "and maxUnavailable must not both be 0, because no machine could then be replaced")
}

// count rejects a number below the minimum, and a number that does not fit into the 32 bits of Gardener's fields.
func (p *problems) count(field string, count, least int) {
	p.addIf(count < least || count > math.MaxInt32, field, "must be between %d and %d", least, math.MaxInt32)
}

// enoughMachines rejects a maximum below the number of zones, because Gardener puts at least one machine into each zone. It
// ignores a maximum of 0, which count rejects.
func (p *problems) enoughMachines(at string, maximum, zones int) {
	p.addIf(maximum > 0 && maximum < zones, at+"autoScalerMax", "must be at least the number of zones, which is %d", zones)
}

// additionalWorkers validates the worker pools after the first one. Each may use only the given zones of the cluster. Of pools that equal
// one of the present pools, only the names are validated.
func (p *problems) additionalWorkers(config *spec.Cluster, zones []string, present []*spec.WorkerPool) {
	const field = "additionalWorkers"

	if len(config.AdditionalWorkers) > maxPools {
		p.add(field, "has %d entries, but at most %d are allowed", len(config.AdditionalWorkers), maxPools)

		return
	}

	names := []string{shoot.FirstPool(config).Name}

	for i, pool := range config.AdditionalWorkers {
		at := fmt.Sprintf("%s[%d].", field, i)

		p.poolName(at+"name", pool.Name, names)

		names = append(names, pool.Name)

		if slices.ContainsFunc(present, func(before *spec.WorkerPool) bool { return reflect.DeepEqual(before, pool) }) {
			continue
		}

		p.machines(at, pool, config.Provider)
		p.workers(at, pool)
		p.poolZones(at, pool, zones)
	}
}

// poolName validates the name of an additional pool. others contains the names of the pools before it, including the first pool.
func (p *problems) poolName(field, name string, others []string) {
	if reasons := validation.IsDNS1123Label(name); len(reasons) > 0 {
		p.add(field, "%q is not a valid worker pool name: %s", name, reasons[0])
	}

	p.addIf(len(name) > maxPoolName, field, "has %d characters, but at most %d are allowed", len(name), maxPoolName)

	p.addIf(slices.Contains(others, name), field, "repeats %q", name)
}

// zonesOf returns the zones of a pool: its own or, if it has none, all zones of the cluster.
func zonesOf(pool *spec.WorkerPool, all []string) []string {
	if len(pool.Zones) == 0 {
		return all
	}

	return pool.Zones
}

// poolZones rejects zones that the cluster does not have.
func (p *problems) poolZones(at string, pool *spec.WorkerPool, all []string) {
	p.unique(at+"zones[%d]", pool.Zones)

	for i, zone := range pool.Zones {
		p.addIf(zone != "" && !slices.Contains(all, zone),
			fmt.Sprintf("%szones[%d]", at, i), "must be a zone of the cluster, not %q", zone)
	}

	p.enoughMachines(at, pool.AutoScalerMax, len(zonesOf(pool, all)))
}

// sameZones rejects removing or reordering the zones of an existing pool, because machines and their disks cannot move to another
// zone. Zones may be appended. Pools are matched by name.
func (p *problems) sameZones(present, wanted *spec.Cluster) {
	all := shoot.Zones(present)

	for i, pool := range wanted.AdditionalWorkers {
		for _, before := range present.AdditionalWorkers {
			had, wants := zonesOf(before, all), zonesOf(pool, all)
			if before.Name == pool.Name && (len(wants) < len(had) || !slices.Equal(had, wants[:len(had)])) {
				p.add(fmt.Sprintf("additionalWorkers[%d].zones", i),
					"must start with the current zones, in the same order: %s", strings.Join(had, ", "))
			}
		}
	}
}
