package installation

import (
	"slices"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Upgraded merges the order for an upgrade with the previous order. The new order determines the components, the version, and
// every entry that it contains. The conflict strategy determines what happens to entries that only the previous order has:
// Merge, the default, keeps them, and Replace drops them. The order's strategy applies to the configuration for all components,
// and a component's strategy to its own configuration.
func Upgraded(former, wanted spec.Kyma) spec.Kyma {
	upgraded := wanted
	upgraded.Configuration = mergeEntries(former.Configuration, wanted.Configuration, wanted.ConflictStrategy)
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
		merged.Configuration = mergeEntries(former.Components[before].Configuration, component.Configuration, component.ConflictStrategy)
		upgraded.Components[i] = &merged
	}
	return upgraded
}

// mergeEntries returns the entries that only the previous order has, followed by the wanted entries. With the strategy Replace,
// it returns only the wanted entries.
func mergeEntries(former, wanted []*spec.Entry, strategy *spec.ConflictStrategy) []*spec.Entry {
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
