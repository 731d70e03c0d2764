package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// modulesParameters is the value of the modules parameter.
type modulesParameters struct {
	Default *bool `json:"default"`
	// List is nil if it was not sent. An empty list chooses no module.
	List []moduleChoice `json:"list"`
}

// absent reports whether the parameter was not sent or is an empty object, which both mean the same.
func (given modulesParameters) absent() bool { return given.Default == nil && given.List == nil }

// moduleChoice is an entry of modulesParameters.List.
type moduleChoice struct {
	Name string `json:"name"`
}

// offeredModule is a module that users can choose.
type offeredModule struct {
	Name string
	// DisplayName is shown in the order forms of marketplaces. The default is Name.
	DisplayName string
	// Default reports whether orders without the modules parameter get the module.
	Default bool
	// DependsOn lists the other modules that this module requires. A choice without them is rejected.
	DependsOn []string
}

// offeredModules returns the modules that users can choose from, in the order of the plan: the modules in the lifecycleManager
// section if Lifecycle Manager is on, and otherwise the modules in the kyma section.
func (p *Plan) offeredModules() []offeredModule {
	if p.LifecycleManager != nil {
		return p.LifecycleManager.offered()
	}

	return p.Kyma.offered()
}

// changeModules applies the modules parameter of an update to the cluster.
func (p *Plan) changeModules(cluster *environment.Cluster, given modulesParameters, violations *Violations) {
	if given.absent() {
		return
	}

	if fixed := p.fixedModules(*cluster); fixed != "" {
		violations.require(false, paramModules, ruleModules, "%s: choosing modules requires a new instance", fixed)

		return
	}

	changed := *cluster.Kyma
	changed.Modules = p.modules(given, violations)
	cluster.Kyma = &changed
}

// fixedModules returns why the modules of the cluster cannot be changed, or an empty string if they can be changed.
func (p *Plan) fixedModules(cluster environment.Cluster) string {
	switch {
	case cluster.Kyma == nil:
		return "the runtime was created without Kyma"
	case cluster.Kyma.InstalledBy(environment.InstallerLifecycleManager) != (p.LifecycleManager != nil):
		return "the runtime's Kyma was not installed by the system that installs Kyma on new runtimes"
	default:
		return ""
	}
}

// modules returns the names of the chosen modules, in the order of the plan: the listed modules, none if the user declines all
// modules, or otherwise the default modules.
func (p *Plan) modules(given modulesParameters, violations *Violations) []string {
	violations.require(given.List == nil || given.Default == nil || !*given.Default, paramModules, ruleModules,
		"must contain either default: true or a list, not both")

	chosen := []string{}

	for _, module := range p.offeredModules() {
		listed := slices.ContainsFunc(given.List, func(choice moduleChoice) bool { return choice.Name == module.Name })
		if listed || module.Default && given.List == nil && (given.Default == nil || *given.Default) {
			chosen = append(chosen, module.Name)
		}
	}

	for _, module := range p.offeredModules() {
		for _, needed := range module.DependsOn {
			violations.require(!slices.Contains(chosen, module.Name) || slices.Contains(chosen, needed), paramModules, ruleModules,
				"%s requires %s: add it to the list", module.Name, needed)
		}
	}

	return chosen
}

// completeModules adds the plan's modules to the schema of the modules parameter.
func (p *Plan) completeModules() {
	modules := p.offeredModules()
	if len(modules) == 0 {
		return
	}

	names, display, defaults := []string{}, map[string]string{}, []string{}

	for _, module := range modules {
		names = append(names, module.Name)
		display[module.Name] = module.title()

		if module.Default {
			defaults = append(defaults, module.Name)
		}
	}

	properties, _ := p.schemas[paramModules]["properties"].(map[string]any)
	standard, _ := properties["default"].(map[string]any)
	list, _ := properties["list"].(map[string]any)
	items, _ := list["items"].(map[string]any)
	fields, _ := items["properties"].(map[string]any)
	name, _ := fields["name"].(map[string]any)

	if len(defaults) > 0 {
		standard["description"] = "Whether the default modules are installed: " + strings.Join(defaults, ", ") + "."
	}

	list["maxItems"] = len(names)
	name["enum"], name["_enumDisplayName"] = names, display
}

// title returns the module name that users see.
func (m offeredModule) title() string { return cmp.Or(m.DisplayName, m.Name) }

// bullets returns the bullet points that describe the plan to users.
func (p *Plan) bullets() []string { return slices.Concat(p.Bullets, p.kymaBullets()) }

// kymaBullets returns bullet points that list the Kyma components and modules of the plan. They are generated, so that
// marketplaces always list exactly the modules and components that get installed.
func (p *Plan) kymaBullets() []string {
	switch {
	case p.LifecycleManager != nil:
		return append([]string{"Kyma"}, p.moduleBullets(p.offeredModules())...)
	case p.Kyma != nil:
		return append([]string{p.Kyma.bullet()}, p.moduleBullets(p.offeredModules())...)
	default:
		return nil
	}
}

// moduleBullets returns a bullet point that lists the given modules, or nil if there are none.
func (p *Plan) moduleBullets(offered []offeredModule) []string {
	modules := []string{}

	for _, module := range offered {
		name := module.title()
		if module.Default {
			name += " (default)"
		}

		modules = append(modules, name)
	}

	switch {
	case len(modules) == 0:
		return nil
	case p.takes(paramModules):
		return []string{"Kyma modules to choose from: " + strings.Join(modules, ", ")}
	default:
		return []string{"Kyma modules: " + strings.Join(modules, ", ")}
	}
}

// checkModules reports modules that can never be installed, and unknown or missing dependencies.
func (p *Plan) checkModules(errs *problems, place string, modules []offeredModule) {
	defaults := map[string]bool{}

	for _, module := range modules {
		if module.Default || !p.takes(paramModules) {
			defaults[module.Name] = true
		}

		errs.require(module.Default || p.takes(paramModules), "%s: module %q can never be installed: make it a default, or list the %s parameter",
			place, module.Name, paramModules)
	}

	for _, module := range modules {
		for _, needed := range module.DependsOn {
			known := slices.ContainsFunc(modules, func(other offeredModule) bool { return other.Name == needed })
			errs.require(known, "%s: module %q depends on %q, which is not a module", place, module.Name, needed)
			errs.require(!defaults[module.Name] || defaults[needed],
				"%s: module %q is a default, but %q, on which it depends, is not", place, module.Name, needed)
		}
	}

	for _, bullet := range p.moduleBullets(modules) {
		errs.text(place+": the list of module names for users", bullet)
	}
}

// checkModulesOf adds an error for each module of the other plan that p lacks. Instances of the other plan can change to p, and
// their runtimes then keep their modules.
func (p *Plan) checkModulesOf(errs *problems, other *Plan) {
	check := func(own, required []offeredModule) {
		for _, module := range required {
			has := slices.ContainsFunc(own, func(each offeredModule) bool { return each.Name == module.Name })
			errs.require(has, "plan %s: instances cannot be changed to plan %s, which lacks the Kyma module %s", other.Name, p.Name, module.Name)
		}
	}

	check(p.Kyma.offered(), other.Kyma.offered())
	check(p.LifecycleManager.offered(), other.LifecycleManager.offered())
}
