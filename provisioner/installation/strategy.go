package installation

import (
	"slices"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Upgraded merges the order of an upgrade with the former order. The new order decides about components, version and every entry
// that it contains. Entries that only the former order has depend on the conflict strategy: Merge, the default, keeps them, and
// Replace drops them. The order's strategy is for the configuration of all components, and a component's strategy for its own
// configuration.
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
		merged := *component
		merged.Configuration = over(former.Components[before].Configuration, component.Configuration, component.ConflictStrategy)
		upgraded.Components[i] = &merged
	}
	return upgraded
}

// over adds the entries that only the former order has, unless the strategy is Replace. Former entries come first.
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
