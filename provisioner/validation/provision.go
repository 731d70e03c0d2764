package validation

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Rules contains the settings of the installation that some rules depend on.
type Rules struct {
	// Project is the name of the Gardener project. The project name and the Shoot name together may have at most 21 characters.
	Project string
}

// Provision validates a new order. It returns nil or one failure.Invalid that lists the invalid fields and the reasons. It
// reports a missing object as a problem and does not panic, because tests and benchmarks call Provision without the checks of
// the GraphQL API.
func Provision(input spec.Runtime, rules Rules) error {
	found := problems{title: "the order is invalid"}

	if !found.sizes(input) {
		return found.err()
	}

	if input.Metadata == nil {
		found.add("runtimeInput", "is missing")
	} else {
		found.text("runtimeInput.name", input.Metadata.Name)
	}

	if input.ClusterConfig == nil || input.ClusterConfig.GardenerConfig == nil {
		found.add("clusterConfig.gardenerConfig", "is missing")
	} else {
		found.administrators("clusterConfig.administrators", input.ClusterConfig.Administrators)
		found.cluster(input.ClusterConfig.GardenerConfig, rules)
	}

	if input.KymaConfig != nil {
		found.kyma(input.KymaConfig)
	}

	return found.err()
}

// text rejects an empty string and a string of more than bounds.Name characters.
func (p *problems) text(field, value string) {
	p.present(field, value)

	p.addIf(utf8.RuneCountInString(value) > bounds.Name, field, "has more than %d characters", bounds.Name)
}

// administrators validates the names of administrators. An identity provider issues these names, so any printable string is
// valid.
func (p *problems) administrators(field string, names []string) {
	if len(names) > bounds.Administrators {
		p.add(field, "has %d entries, but at most %d are allowed", len(names), bounds.Administrators)

		return
	}

	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", field, i)
		p.text(at, name)

		p.addIf(!utf8.ValidString(name) || slices.ContainsFunc([]rune(name), unicode.IsControl),
			at, "contains a character that is not printable")
	}
}
