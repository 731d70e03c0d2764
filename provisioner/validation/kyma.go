package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const (
	// runtimeAgent connects a runtime. Without it nobody would know of its Kyma.
	runtimeAgent = "compass-runtime-agent"

	maxComponents = 200
	maxEntries    = 500
)

// UpgradeRuntime returns nil or one failure.Invalid that names each field that is wrong, and what is wrong with it.
func UpgradeRuntime(input spec.KymaUpgrade) error {
	found := problems{what: "the runtime cannot be upgraded like this"}

	if input.KymaConfig == nil {
		found.add("kymaConfig", "is missing")
	} else {
		found.kyma(input.KymaConfig)
	}

	return found.err()
}

func (p *problems) kyma(config *spec.Kyma) {
	const field = "kymaConfig.components"

	p.present("kymaConfig.version", config.Version)
	p.entries("kymaConfig.configuration", config.Configuration)

	switch {
	case len(config.Components) == 0:
		p.add(field, "must not be empty")

		return
	case len(config.Components) > maxComponents:
		p.add(field, "has %d entries, at most %d are allowed", len(config.Components), maxComponents)

		return
	}

	seen := map[string]bool{}

	for i, component := range config.Components {
		p.component(fmt.Sprintf("%s[%d]", field, i), component, seen)
	}

	if !seen[runtimeAgent] {
		p.add(field, "must hold %s", runtimeAgent)
	}
}

// component finds what is wrong with one, and notes its name among those seen.
func (p *problems) component(field string, component *spec.Component, seen map[string]bool) {
	if component == nil {
		p.add(field, "must not be null")

		return
	}

	p.present(field+".component", component.Component)

	if component.Component != "" && seen[component.Component] {
		p.add(field+".component", "repeats %q", component.Component)
	}

	seen[component.Component] = true

	if len(validation.IsDNS1123Label(component.Namespace)) > 0 {
		p.add(field+".namespace", "must be a name such as kyma-system, not %q", component.Namespace)
	}

	if component.SourceURL != nil {
		p.present(field+".sourceURL", *component.SourceURL)
	}

	p.entries(field+".configuration", component.Configuration)
}

// entries finds entries that are missing, have no key, or the key of another one. A text of theirs may be secret and is not told.
func (p *problems) entries(field string, entries []*spec.Entry) {
	if len(entries) > maxEntries {
		p.add(field, "has %d entries, at most %d are allowed", len(entries), maxEntries)

		return
	}

	if i := slices.Index(entries, nil); i >= 0 {
		p.add(fmt.Sprintf("%s[%d]", field, i), "must not be null")

		return
	}

	seen := map[string]bool{}

	for i, entry := range entries {
		at := fmt.Sprintf("%s[%d].key", field, i)
		p.present(at, entry.Key)

		if entry.Key != "" && seen[entry.Key] {
			p.add(at, "repeats %q", entry.Key)
		}

		seen[entry.Key] = true
	}
}
