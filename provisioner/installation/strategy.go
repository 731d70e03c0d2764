package installation

import (
	"slices"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Upgraded lays an order over the one before. What is wanted wins; its conflict strategies say what becomes of configuration that only
// the former order has: with Merge, which is the default, it stays, with Replace it goes. The order's own strategy is for what all
// components share, a component's for its own. Components that are not wanted any more go with their configuration.
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
