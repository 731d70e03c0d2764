package validation

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const (
	// The limits of an order. Lengths are in characters. The name is passed on to Director, administrators to RBAC in the
	// cluster.
	maxRuntimeName        = 256
	maxAdministrators     = 100
	maxAdministratorRunes = 256
)

// Rules are the rules that depend on the installation.
type Rules struct {
	// Project is the name of the Gardener project. With the name of a Shoot it has at most 21 characters.
	Project string
}

// Provision validates a new order. It returns nil or one failure.Invalid that lists the invalid fields and the reasons. Orders
// need not come from GraphQL: missing objects are problems, never panics.
func Provision(input spec.Runtime, rules Rules) error {
	found := problems{title: "the order is invalid"}

	if input.Metadata == nil {
		found.add("runtimeInput", "is missing")
	} else {
		found.runtime(input.Metadata)
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

func (p *problems) runtime(input *spec.Metadata) {
	p.present("runtimeInput.name", input.Name)

	if utf8.RuneCountInString(input.Name) > maxRuntimeName {
		p.add("runtimeInput.name", "has more than %d characters", maxRuntimeName)
	}
}

// administrators validates user names of an identity provider, which may be any printable text.
func (p *problems) administrators(field string, names []string) {
	if len(names) > maxAdministrators {
		p.add(field, "has %d entries, at most %d are allowed", len(names), maxAdministrators)

		return
	}

	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", field, i)
		p.present(at, name)

		if utf8.RuneCountInString(name) > maxAdministratorRunes {
			p.add(at, "has more than %d characters", maxAdministratorRunes)
		}

		if !utf8.ValidString(name) || slices.ContainsFunc([]rune(name), unicode.IsControl) {
			p.add(at, "contains a character that is not printable")
		}
	}
}
