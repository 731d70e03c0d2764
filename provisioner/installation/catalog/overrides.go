package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// resolve lays the values of a component over each other: the release's, those of its profile, the order's for all components, the
// order's for this one. What is for all components may be of use for some of them only; what is for one component is one of its values.
func (c *component) resolve(order spec.Kyma, problems *problems) (values map[string]string, secrets []string) {
	values = map[string]string{}
	lay := func(entry *spec.Entry) {
		values[entry.Key] = entry.Value
		secrets = slices.DeleteFunc(secrets, func(key string) bool { return key == entry.Key })
		if entry.Secret != nil && *entry.Secret {
			secrets = append(secrets, entry.Key)
		}
	}
	for key, value := range c.Values {
		if value != nil {
			values[key] = *value
		}
	}
	if order.Profile != nil {
		maps.Copy(values, c.Profiles[*order.Profile])
	}
	for _, entry := range order.Configuration {
		if _, known := c.Values[entryKey(entry)]; known {
			lay(entry)
		}
	}
	if index, ordered := find(order, c.Name); ordered != nil {
		for i, entry := range ordered.Configuration {
			if _, known := c.Values[entryKey(entry)]; !known {
				problems.add(fmt.Sprintf("components[%d].configuration[%d]", index, i), "component %q has no value %q; it has %s",
					c.Name, entryKey(entry), strings.Join(slices.Sorted(maps.Keys(c.Values)), ", "))
				continue
			}
			lay(entry)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Values)) {
		if _, given := values[key]; !given {
			problems.add("configuration", "component %q needs a value for %q", c.Name, key)
		}
	}
	return values, secrets
}

// entryKey returns the key, which nothing has when a list holds nothing in its place.
func entryKey(entry *spec.Entry) string {
	if entry == nil {
		return ""
	}
	return entry.Key
}
