package releases

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// plan returns the plan for an order. It contains the required components of the release and the components that the order names,
// each after its dependencies. sources reports whether the order may contain components with a sourceURL. The error is a
// failure.Invalid that lists all problems of the order. plan does not download anything.
func (r *release) plan(order spec.Kyma, sources bool) (installation.Plan, error) {
	problems := &problems{}
	chosen := r.choose(order, sources, problems)
	plan := installation.Plan{Version: r.Version}
	if order.Profile != nil {
		plan.Profile = string(*order.Profile)
	}
	ordered, _ := sorted(chosen)
	for _, component := range ordered {
		planned := installation.Component{
			Name: component.Name, Namespace: component.Namespace, Source: sourceOf(r.Version, component.Name),
			DependsOn: component.DependsOn, Optional: component.Optional, External: component.source != "",
		}
		if planned.External {
			planned.Source = component.source
		}
		planned.Values, planned.SecretKeys = component.resolve(order, problems)
		if _, ordered := find(order, component.Name); ordered != nil && ordered.Namespace != "" {
			planned.Namespace = ordered.Namespace
		}
		plan.Components = append(plan.Components, planned)
	}
	if err := problems.err(); err != nil {
		return installation.Plan{}, err
	}
	return plan, nil
}

// choose returns the required components that the order does not name, in the sequence of the release, followed by the components
// that the order names, in the order's own sequence. Optional dependencies are not added automatically: the order must name them.
func (r *release) choose(order spec.Kyma, sources bool, problems *problems) []component {
	var chosen []component
	for _, component := range r.Components {
		if _, named := find(order, component.Name); named == nil && !component.Optional {
			chosen = append(chosen, component)
		}
	}
	for i, wanted := range order.Components {
		field := fmt.Sprintf("components[%d]", i)
		if wanted == nil {
			problems.add(field, "is null")
			continue
		}
		component := r.wanted(wanted, field, sources, problems)
		first, _ := find(order, wanted.Component)
		switch {
		case component == nil:
			continue
		case first != i:
			problems.add(field+".component", "repeats %q", wanted.Component)
			continue
		}
		chosen = append(chosen, *component)
		for _, name := range component.DependsOn {
			if on, named := find(order, name); named == nil && on < 0 && r.component(name).Optional {
				problems.add(field+".component", "%q needs %q, which the order does not contain", component.Name, name)
			}
		}
	}
	return chosen
}

// noSources explains why a sourceURL is rejected.
const noSources = "this Provisioner installs only components of its releases: omit sourceURL, or ask an operator to set APP_KYMA_SOURCES_CACHE_PATH"

// wanted returns a copy of the component that an order names. If the component is neither in the release nor has a sourceURL,
// wanted reports a problem and returns nil. A component with a sourceURL keeps the namespace, the dependencies and the values
// from the release, if the release contains it.
func (r *release) wanted(wanted *spec.Component, field string, sources bool, problems *problems) *component {
	found := &component{Name: wanted.Component, Namespace: wanted.Namespace, Optional: true}
	known := r.component(wanted.Component)
	if known != nil {
		*found = *known
	}
	if wanted.SourceURL == nil || *wanted.SourceURL == "" {
		if known == nil {
			problems.add(field+".component", "release %s has no component %q; it has %s",
				r.Version, wanted.Component, strings.Join(r.names(), ", "))
			return nil
		}
		return found
	}
	if len(validation.IsDNS1123Label(wanted.Component)) > 0 {
		problems.add(field+".component", "%q is not a valid name: use lower-case letters, digits and hyphens", wanted.Component)
	}
	if _, err := parseSource(*wanted.SourceURL); err != nil {
		problems.add(field+".sourceURL", "%s", err)
	} else if !sources {
		problems.add(field+".sourceURL", noSources)
	}
	found.source = *wanted.SourceURL
	return found
}

// find returns the first entry of the order for the named component, with its index, or -1 and nil if there is none.
func find(order spec.Kyma, name string) (int, *spec.Component) {
	index := slices.IndexFunc(order.Components, func(component *spec.Component) bool {
		return component != nil && component.Component == name
	})
	if index < 0 {
		return index, nil
	}
	return index, order.Components[index]
}

// problems collects the problems of an order. Each problem starts with the path of its field.
type problems struct{ found []string }

// add records a problem with a field, such as components[0].sourceURL.
func (p *problems) add(field, format string, args ...any) {
	p.found = append(p.found, "kymaConfig."+field+": "+fmt.Sprintf(format, args...))
}

// err returns an error with all problems, or nil if there are none.
func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	return invalid("%s", strings.Join(p.found, "; "))
}

// invalid returns a failure.Invalid. Its text is for the client that sent the order.
func invalid(format string, args ...any) error {
	return failure.New(failure.Invalid, format, args...).WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}

// checkOrder reports invalid dependencies: on unknown components, on optional components if the dependent component is required,
// and in cycles.
func (r *release) checkOrder(report func(string, ...any)) {
	for _, component := range r.Components {
		for _, name := range component.DependsOn {
			on := r.component(name)
			switch {
			case on == nil:
				report("component %q depends on %q, which is not a component of the release", component.Name, name)
			case on.Optional && !component.Optional:
				report("component %q, which is always installed, depends on %q, which is optional", component.Name, name)
			}
		}
	}
	if _, circle := sorted(r.Components); len(circle) > 0 {
		report("components depend on each other in a cycle: %s", strings.Join(circle, ", "))
	}
}

// sorted places each component after its dependencies and otherwise preserves the sequence. It ignores dependencies that are not
// in the list. circle names the components that cannot be sorted, because they are in a cycle or depend on one.
func sorted(components []component) (ordered []component, circle []string) {
	waiting := slices.Clone(components)
	for len(waiting) > 0 {
		ready := slices.IndexFunc(waiting, func(candidate component) bool {
			return !slices.ContainsFunc(waiting, func(other component) bool {
				return slices.Contains(candidate.DependsOn, other.Name)
			})
		})
		if ready < 0 {
			for _, component := range waiting {
				circle = append(circle, component.Name)
			}
			return ordered, circle
		}
		ordered = append(ordered, waiting[ready])
		waiting = slices.Delete(waiting, ready, ready+1)
	}
	return ordered, nil
}

// resolve merges the values of a component. Later sources override earlier ones: the defaults of the release, the profile, the
// order's configuration for all components, and the order's configuration for this component. A key that the component does not
// declare is ignored in the configuration for all components. In the configuration for this component, it is a problem, unless
// the manifests come from another source. A declared key without a value is a problem too. secrets are the keys whose value comes
// from a secret entry.
func (c *component) resolve(order spec.Kyma, problems *problems) (values map[string]string, secrets []string) {
	values = map[string]string{}
	set := func(entry *spec.Entry) {
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
			set(entry)
		}
	}
	if index, ordered := find(order, c.Name); ordered != nil {
		for i, entry := range ordered.Configuration {
			if !c.accepts(entry) {
				problems.add(fmt.Sprintf("components[%d].configuration[%d]", index, i), "%s", c.unknownKey(entryKey(entry)))
				continue
			}
			set(entry)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Values)) {
		if _, given := values[key]; !given {
			problems.add("configuration", "component %q needs a value for %q", c.Name, key)
		}
	}
	return values, secrets
}

// unknownKey describes the problem of a key that the component does not declare.
func (c *component) unknownKey(key string) string {
	if len(c.Values) == 0 {
		return fmt.Sprintf("component %q accepts no configuration", c.Name)
	}
	return fmt.Sprintf("component %q has no configuration key %q; its keys are: %s", c.Name, key, strings.Join(slices.Sorted(maps.Keys(c.Values)), ", "))
}

// accepts reports whether the order may have the entry for this component. The keys of another source are unknown, so accepts
// allows all of them.
func (c *component) accepts(entry *spec.Entry) bool {
	_, known := c.Values[entryKey(entry)]
	return known || c.source != "" && entry != nil
}

// entryKey returns the key of an entry, or "" for null, which the GraphQL schema allows in the list.
func entryKey(entry *spec.Entry) string {
	if entry == nil {
		return ""
	}
	return entry.Key
}
