package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// withoutRepeated removes create-only parameters from an update. Service Catalog, Service Manager and the SAP BTP service
// operator send all parameters with every update, so a create-only parameter may be sent again with its current value. A
// different value is a violation. withoutRepeated keeps malformed parameters and parameters that the plan does not have; the
// schema for updates rejects them.
func (p *Plan) withoutRepeated(instance environment.Instance, sent json.RawMessage) (json.RawMessage, Violations) {
	var (
		fields, ordered map[string]json.RawMessage
		violations      Violations
	)

	if json.Unmarshal(sent, &fields) != nil || len(fields) == 0 {
		return sent, nil
	}

	// The stored parameters are an object or empty. If they cannot be decoded, the order is treated as having no parameters.
	_ = json.Unmarshal(instance.Request.Parameters, &ordered)

	kept := maps.Clone(fields)

	for _, name := range slices.Sorted(maps.Keys(fields)) {
		_, wasSent := ordered[name]
		changeable := slices.Contains(p.Updates, name) && !p.repeatsFixedModules(instance, name, fields[name], ordered[name])

		if changeable || !p.takes(name) && !wasSent {
			continue
		}

		violations.require(equalValues(fields[name], ordered[name]) || p.repeats(instance, name, fields[name]),
			name, ruleCreateOnly, "cannot be changed after creation")
		delete(kept, name)
	}

	if len(kept) == len(fields) {
		return sent, nil // nothing was removed
	}

	encoded, err := json.Marshal(kept)
	if err != nil {
		return sent, violations // cannot happen: the fields were decoded before
	}

	return encoded, violations
}

// repeatsFixedModules reports whether the named parameter repeats the stored modules of a runtime whose modules cannot be changed. The
// plan may no longer have these modules.
func (p *Plan) repeatsFixedModules(instance environment.Instance, name string, value, stored json.RawMessage) bool {
	return name == paramModules && p.fixedModules(instance.Request.Cluster) != "" && equalValues(value, stored)
}

// repeats reports whether setting the named parameter to the given value would leave the instance unchanged. The value may be an
// object with only some of the fields, such as one of the three networks.
func (p *Plan) repeats(instance environment.Instance, name string, value json.RawMessage) bool {
	object, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return false
	}

	var given parameters
	if json.Unmarshal(object, &given) != nil || reflect.DeepEqual(given, parameters{}) {
		return false
	}

	cluster := instance.Request.Cluster
	if cluster.Own != nil {
		cluster.Own = given.applyOwn(cluster.Own, new(Violations))
	} else {
		given.apply(&cluster)
	}

	area := slices.ContainsFunc(p.Offers, func(offer offer) bool {
		return offer.Provider == instance.Provider && offer.Areas[given.Region] == instance.Region
	})

	version := ""
	if cluster.Kyma != nil {
		version = cluster.Kyma.Version
	}

	return reflect.DeepEqual(cluster, instance.Request.Cluster) && p.repeatsModules(instance.Request.Cluster, given.Modules) &&
		cmp.Or(given.KymaVersion, version) == version &&
		(given.DeletionProtection == nil || *given.DeletionProtection == instance.DeletionProtection) &&
		cmp.Or(given.Name, instance.Name) == instance.Name &&
		strings.EqualFold(cmp.Or(given.Provider, instance.Provider), instance.Provider) &&
		(area || cmp.Or(given.Region, instance.Region) == instance.Region)
}

// repeatsModules reports whether the modules parameter is absent or chooses the modules that the cluster has.
func (p *Plan) repeatsModules(cluster environment.Cluster, given modulesParameters) bool {
	if given.absent() {
		return true
	}

	return cluster.Kyma != nil && slices.Equal(p.modules(given, new(Violations)), cluster.Kyma.Modules)
}

// equalValues reports whether two JSON values are equal. Absent and malformed values are never equal.
func equalValues(one, other json.RawMessage) bool {
	var first, second any

	return decodeExactly(one, &first) && decodeExactly(other, &second) && reflect.DeepEqual(first, second)
}

// decodeExactly decodes a JSON value without rounding numbers. It returns false if the value is malformed.
func decodeExactly(raw json.RawMessage, into *any) bool {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()

	return decoder.Decode(into) == nil
}
