package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// plan makes the plan of an order: what the release always installs, and what the order names besides. All that is wrong with the order
// is told at once.
func (r *release) plan(order spec.Kyma) (installation.Plan, error) {
	problems := &problems{}
	chosen := r.choose(order, problems)
	plan := installation.Plan{Version: r.Version}
	if order.Profile != nil {
		plan.Profile = string(*order.Profile)
	}
	ordered, _ := sorted(chosen)
	for _, component := range ordered {
		planned := installation.Component{
			Name: component.Name, Namespace: component.Namespace, Source: sourceOf(r.Version, component.Name),
			DependsOn: component.DependsOn, Optional: component.Optional,
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

// choose returns the components of the release that are always installed and are not named, and then those that are named, in the
// order's order.
func (r *release) choose(order spec.Kyma, problems *problems) []component {
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
		component := r.component(wanted.Component)
		first, _ := find(order, wanted.Component)
		switch {
		case component == nil:
			problems.add(field+".component", "release %s has no component %q; it has %s",
				r.Version, wanted.Component, strings.Join(r.names(), ", "))
			continue
		case first != i:
			problems.add(field+".component", "names %q a second time", wanted.Component)
			continue
		case wanted.SourceURL != nil && *wanted.SourceURL != "":
			problems.add(field+".sourceURL", "components come from their release only; leave it out")
		}
		chosen = append(chosen, *component)
		for _, name := range component.DependsOn {
			if on, named := find(order, name); named == nil && on < 0 && r.component(name).Optional {
				problems.add(field+".component", "%q needs %q, which the order does not name", component.Name, name)
			}
		}
	}
	return chosen
}

// find returns the first place at which the order names the component, and what stands there; -1 and nil when there is none.
func find(order spec.Kyma, name string) (int, *spec.Component) {
	index := slices.IndexFunc(order.Components, func(component *spec.Component) bool {
		return component != nil && component.Component == name
	})
	if index < 0 {
		return index, nil
	}
	return index, order.Components[index]
}

// problems collects what is wrong with an order.
type problems struct{ found []string }

func (p *problems) add(field, format string, args ...any) {
	p.found = append(p.found, "kymaConfig."+field+": "+fmt.Sprintf(format, args...))
}

func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	return invalid("%s", strings.Join(p.found, "; "))
}

func invalid(format string, args ...any) error {
	return failure.New(failure.Invalid, format, args...).WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}
