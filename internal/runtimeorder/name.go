package runtimeorder

import (
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// longestName is how many characters Director takes as the name of a runtime.
const longestName = 36

// nameOf is the name under which Director is to know the runtime: the instance's name for people, then the cluster's, for several
// instances may have one name. Director takes small letters, digits, hyphens and dots, and no digit first.
func nameOf(instance environment.Instance) string {
	name := strings.ToLower(instance.Name)
	if strings.IndexAny(name, "0123456789") == 0 {
		name = "runtime-" + name
	}

	suffix := "-" + instance.ShootName
	room := max(longestName-len(suffix), 0)

	return strings.TrimRight(name[:min(len(name), room)], "-") + suffix
}
