package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const (
	// runtimeAgent is the component that connects the runtime to Director. An order for Kyma must contain it, as in Kyma
	// Provisioner.
	runtimeAgent = "compass-runtime-agent"

	// maxComponents and maxEntries limit the work for one order. Real releases of Kyma are far below both limits.
	maxComponents = 200
	maxEntries    = 500
)

// UpgradeRuntime validates an upgrade of Kyma. It returns nil or one failure.Invalid that lists the invalid fields and the
// reasons. Package releases compares the components with the release when it plans the installation. UpgradeCluster
// validates the Kubernetes version.
func UpgradeRuntime(input spec.KymaUpgrade) error {
	found := problems{title: "the upgrade is invalid"}

	if !found.sizes(input) {
		return found.err()
	}

	if input.KymaConfig == nil {
		found.add("kymaConfig", "is missing")
	} else {
		found.kyma(input.KymaConfig)
	}

	return found.err()
}

// kyma validates the kymaConfig of an order or an upgrade, which has the same path in both. If there are no components or too
// many, it reports only that and does not validate the components.
func (p *problems) kyma(config *spec.Kyma) {
	const field = "kymaConfig.components"

	p.present("kymaConfig.version", config.Version)
	p.entries("kymaConfig.configuration", config.Configuration)

	switch {
	case len(config.Components) == 0:
		p.add(field, "must not be empty")

		return
	case len(config.Components) > maxComponents:
		p.add(field, "has %d entries, but at most %d are allowed", len(config.Components), maxComponents)

		return
	}

	seen := map[string]bool{}

	for i, component := range config.Components {
		p.component(fmt.Sprintf("%s[%d]", field, i), component, seen)
	}

	p.addIf(!seen[runtimeAgent], field, "must contain %s", runtimeAgent)
}

// component validates one component and adds its name to seen, the names of the preceding components.
func (p *problems) component(field string, component *spec.Component, seen map[string]bool) {
	if component == nil {
		p.add(field, "must not be null")

		return
	}

	p.present(field+".component", component.Component)

	p.addIf(component.Component != "" && seen[component.Component],
		field+".component", "repeats %q", component.Component)

	seen[component.Component] = true

	p.addIf(len(validation.IsDNS1123Label(component.Namespace)) > 0,
		field+".namespace", "must be a name such as kyma-system, not %q", component.Namespace)

	if component.SourceURL != nil {
		p.present(field+".sourceURL", *component.SourceURL)
	}

	p.entries(field+".configuration", component.Configuration)
}

// entries rejects configuration entries that are null, have no key, or repeat a key. Messages contain only keys, because values
// may be secret.
func (p *problems) entries(field string, entries []*spec.Entry) {
	if len(entries) > maxEntries {
		p.add(field, "has %d entries, but at most %d are allowed", len(entries), maxEntries)

		return
	}

	if i := slices.Index(entries, nil); i >= 0 {
		p.add(fmt.Sprintf("%s[%d]", field, i), "must not be null")

		return
	}

	keys := make([]string, len(entries))
	for i, entry := range entries {
		keys[i] = entry.Key
	}

	p.unique(field+"[%d].key", keys)
}
