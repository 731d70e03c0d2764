package catalog

import (
	"slices"
	"strings"
)

// checkOrder finds dependencies that cannot be met, and those that go round in a circle.
func (r *release) checkOrder(wrong func(string, ...any)) {
	for _, component := range r.Components {
		for _, name := range component.DependsOn {
			on := r.component(name)
			switch {
			case on == nil:
				wrong("component %q depends on %q, which is not among the components", component.Name, name)
			case on.Optional && !component.Optional:
				wrong("component %q, which is always installed, depends on %q, which is optional", component.Name, name)
			}
		}
	}
	if _, circle := sorted(r.Components); len(circle) > 0 {
		wrong("components depend on each other in a circle: %s", strings.Join(circle, ", "))
	}
}

// sorted puts each component after those that it depends on, and else leaves the order as it is. Those in a circle, or behind one, are
// returned by name. A dependency on what is not among the components is taken as met.
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
