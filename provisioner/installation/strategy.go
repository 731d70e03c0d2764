package installation

import (
	"slices"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Upgraded merges a new order into the former one. The new order wins; conflict strategies decide about configuration that only the former
// order has: Merge, the default, keeps it, Replace drops it. The strategy of the order applies to the configuration of all components,
// that of a component to its own. Components that the new order lacks are dropped with their configuration.
func Upgraded(former, wanted spec.Kyma) spec.Kyma {
	upgraded := wanted
	upgraded.Configuration = over(former.Configuration, wanted.Configuration, wanted.ConflictStrategy)
	upgraded.Components = slices.Clone(wanted.Components)
	for i, component := range wanted.Components {
		if component == nil {
			continue
		}
		before := slices.IndexFunc(former.Components, func(other *spec.Component) bool {
			return other != nil && other.Component == component.Component
		})
		if before < 0 {
			continue
		}
		laid := *component
		laid.Configuration = over(former.Components[before].Configuration, component.Configuration, component.ConflictStrategy)
		upgraded.Components[i] = &laid
	}
	return upgraded
}

func over(former, wanted []*spec.Entry, strategy *spec.ConflictStrategy) []*spec.Entry {
	if strategy != nil && *strategy == spec.ConflictStrategyReplace {
		return wanted
	}
	var entries []*spec.Entry
	for _, entry := range former {
		if entry != nil && !slices.ContainsFunc(wanted, func(other *spec.Entry) bool {
			return other != nil && other.Key == entry.Key
		}) {
			entries = append(entries, entry)
		}
	}
	return append(entries, wanted...)
}
