package catalog

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// runtimeAgent is a component that every order of Kyma must contain. The Provisioner rejects other orders.
const runtimeAgent = "compass-runtime-agent"

// kymaPlan configures the Kyma that the Provisioner installs on the runtimes of a plan.
type kymaPlan struct {
	// Profile is Evaluation, Production or empty.
	Profile string `json:"profile"`
	// Components are installed on every runtime, in this order and before the modules.
	Components []kymaComponent `json:"components"`
	// AdditionalComponents maps versions of Kyma to components that only these versions have. They follow Components.
	AdditionalComponents map[string][]kymaComponent `json:"additionalComponents"`
	// Modules are the components that users choose from, in the order of their installation.
	Modules []kymaModule `json:"modules"`
}

// kymaComponent is a component of a release of Kyma. Configuration replaces values of the release. It is published with the
// catalog's files, so it must not contain secrets; these belong into Secrets of the control plane.
type kymaComponent struct {
	Name          string            `json:"name"`
	Namespace     string            `json:"namespace"`
	Configuration map[string]string `json:"configuration"`
}

// kymaModule is a component that users can choose.
type kymaModule struct {
	kymaComponent

	// DisplayName is the name in forms of marketplaces. The default is the name.
	DisplayName string `json:"displayName"`
	// Default reports whether orders without the parameter modules get the module.
	Default bool `json:"default"`
	// DependsOn lists modules that must be chosen, too.
	DependsOn []string `json:"dependsOn"`
}

// modulesParameters is the value of the parameter modules.
type modulesParameters struct {
	Default *bool `json:"default"`
	// List is nil if it was not sent. An empty list chooses no module.
	List []moduleChoice `json:"list"`
}

// moduleChoice is an element of the list of modules.
type moduleChoice struct {
	Name string `json:"name"`
}

// InstallsKyma reports whether the Provisioner installs Kyma on the plan's new runtimes.
func (p *Plan) InstallsKyma() bool { return p.Kyma != nil }

// limitKyma removes what the options switch off: all of Kyma without a default version, and the parameter kymaVersion unless
// orders may choose the version. The plan must have passed content.check.
func (p *Plan) limitKyma(options Options) {
	var off []string

	if options.KymaVersion == "" {
		p.Kyma, off = nil, []string{paramModules, paramKymaVersion}
	} else if !options.KymaVersionOnDemand {
		off = []string{paramKymaVersion}
	}

	for _, names := range []*[]string{&p.Parameters, &p.Updates, &p.Required} {
		*names = slices.DeleteFunc(*names, func(name string) bool { return slices.Contains(off, name) })
	}
}

// orderedKyma returns the Kyma of a new runtime, or nil for a plan without Kyma.
func (p *Plan) orderedKyma(given parameters, violations *Violations) *environment.Kyma {
	if p.Kyma == nil {
		return nil
	}

	return &environment.Kyma{
		Version: given.KymaVersion, Ordered: given.KymaVersion != "", Modules: p.modules(given.Modules, violations),
	}
}

// changeModules sets the modules of an update in the cluster.
func (p *Plan) changeModules(cluster *environment.Cluster, given modulesParameters, violations *Violations) {
	if given.Default == nil && given.List == nil {
		return
	}

	if cluster.Kyma == nil {
		violations.require(false, paramModules, ruleModules, "the runtime was created without Kyma: modules require a new instance")

		return
	}

	changed := *cluster.Kyma
	changed.Modules = p.modules(given, violations)
	cluster.Kyma = &changed
}

// modules returns the names of the chosen modules, in the order of the plan: the listed ones, or else the defaults, unless the
// user declines them.
func (p *Plan) modules(given modulesParameters, violations *Violations) []string {
	violations.require(given.List == nil || given.Default == nil || !*given.Default, paramModules, ruleModules,
		"must contain either default: true or a list, not both")

	chosen := []string{}

	for _, module := range p.Kyma.Modules {
		listed := slices.ContainsFunc(given.List, func(choice moduleChoice) bool { return choice.Name == module.Name })
		if listed || module.Default && given.List == nil && (given.Default == nil || *given.Default) {
			chosen = append(chosen, module.Name)
		}
	}

	for _, module := range p.Kyma.Modules {
		for _, needed := range module.DependsOn {
			violations.require(!slices.Contains(chosen, module.Name) || slices.Contains(chosen, needed), paramModules, ruleModules,
				"%s requires %s: add it to the list", module.Name, needed)
		}
	}

	return chosen
}

// Installation returns the components that the Provisioner installs for a version and the chosen modules. The error is failure.Permanent if
// the plan does not have Kyma or one of the modules, because its files have changed since the order.
func (p *Plan) Installation(kyma environment.Kyma) (*environment.KymaInstallation, error) {
	if p.Kyma == nil {
		return nil, failure.New(failure.Permanent, "plan %s has no Kyma any more: an operator has to restore it in the catalog and APP_KYMA_VERSION", p.Name)
	}

	installation := &environment.KymaInstallation{Version: kyma.Version, Profile: p.Kyma.Profile}

	for _, component := range slices.Concat(p.Kyma.Components, p.Kyma.AdditionalComponents[kyma.Version]) {
		installation.Components = append(installation.Components, component.installed())
	}

	for _, name := range kyma.Modules {
		index := slices.IndexFunc(p.Kyma.Modules, func(module kymaModule) bool { return module.Name == name })
		if index < 0 {
			return nil, failure.New(failure.Permanent, "plan %s has no module %q any more: choose other modules", p.Name, name)
		}

		installation.Components = append(installation.Components, p.Kyma.Modules[index].installed())
	}

	return installation, nil
}

// installed returns the component with its configuration, sorted by key.
func (c kymaComponent) installed() environment.KymaComponent {
	component := environment.KymaComponent{Name: c.Name, Namespace: c.Namespace}
	for _, key := range slices.Sorted(maps.Keys(c.Configuration)) {
		component.Configuration = append(component.Configuration, environment.KymaEntry{Key: key, Value: secret.String(c.Configuration[key])})
	}

	return component
}

// completeModules adds the modules of the plan to the schema of the parameter modules.
func (p *Plan) completeModules() {
	if p.Kyma == nil || len(p.Kyma.Modules) == 0 {
		return
	}

	names, display, defaults := []string{}, map[string]string{}, []string{}

	for _, module := range p.Kyma.Modules {
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

// title returns the name of the module for users.
func (m kymaModule) title() string {
	if m.DisplayName != "" {
		return m.DisplayName
	}

	return m.Name
}

// bullets returns the texts of the plan for users.
func (p *Plan) bullets() []string { return slices.Concat(p.Bullets, p.kymaBullets()) }

// kymaBullets describes the installed Kyma for users, so that marketplaces promise exactly that.
func (p *Plan) kymaBullets() []string {
	if p.Kyma == nil {
		return nil
	}

	components, modules := []string{}, []string{}
	for _, component := range p.Kyma.Components {
		components = append(components, component.Name)
	}

	for _, module := range p.Kyma.Modules {
		name := module.title()
		if module.Default {
			name += " (default)"
		}

		modules = append(modules, name)
	}

	bullets := []string{"Kyma with " + strings.Join(components, ", ")}

	switch {
	case len(modules) == 0:
	case p.takes(paramModules):
		bullets = append(bullets, "Kyma modules to choose from: "+strings.Join(modules, ", "))
	default:
		bullets = append(bullets, "Kyma modules: "+strings.Join(modules, ", "))
	}

	return bullets
}

// kymaVersions matches valid versions of Kyma, as the Provisioner does.
var kymaVersions = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// IsKymaVersion reports whether the text has the form of a version of Kyma.
func IsKymaVersion(text string) bool { return kymaVersions.MatchString(text) }

// checkKyma reports the errors of a plan's Kyma.
func (p *Plan) checkKyma(errs *problems, place string) {
	errs.require(!p.OwnCluster || p.Kyma == nil, "%s: a plan with ownCluster cannot have kyma, because the Provisioner does not know its clusters", place)
	errs.require(p.Kyma != nil || !p.takes(paramKymaVersion), "%s: parameter %s requires kyma", place, paramKymaVersion)
	errs.require(!p.takes(paramModules) || p.Kyma != nil && len(p.Kyma.Modules) > 0, "%s: parameter %s requires kyma with modules", place, paramModules)

	if p.Kyma == nil {
		return
	}

	place += ": kyma"
	errs.require(slices.Contains([]string{"", "Evaluation", "Production"}, p.Kyma.Profile), "%s: profile %q is neither Evaluation nor Production", place, p.Kyma.Profile)
	errs.require(slices.ContainsFunc(p.Kyma.Components, func(one kymaComponent) bool { return one.Name == runtimeAgent }),
		"%s: components must contain %s, which the Provisioner requires", place, runtimeAgent)

	always := map[string]bool{}
	for _, component := range p.Kyma.Components {
		component.check(errs, place, always)
	}

	defaults := map[string]bool{}

	for _, module := range p.Kyma.Modules {
		module.check(errs, place, always)

		if module.Default || !p.takes(paramModules) {
			defaults[module.Name] = true
		}

		errs.require(module.Default || p.takes(paramModules), "%s: module %q can never be installed: make it a default, or list the parameter %s",
			place, module.Name, paramModules)
	}

	for _, module := range p.Kyma.Modules {
		for _, needed := range module.DependsOn {
			known := slices.ContainsFunc(p.Kyma.Modules, func(other kymaModule) bool { return other.Name == needed })
			errs.require(known, "%s: module %q depends on %q, which is not a module", place, module.Name, needed)
			errs.require(!defaults[module.Name] || defaults[needed], "%s: module %q is a default, but %q, on which it depends, is not", place, module.Name, needed)
		}
	}

	for version, components := range p.Kyma.AdditionalComponents {
		errs.require(kymaVersions.MatchString(version), "%s: additionalComponents: %q is not a version", place, version)

		taken := maps.Clone(always)
		for _, component := range components {
			component.check(errs, place+": additionalComponents "+version, taken)
		}
	}

	for _, bullet := range p.kymaBullets() {
		errs.text(place+": the text about the modules for users, made from their names,", bullet)
	}
}

// check reports an invalid or repeated component, and adds its name to the taken ones.
func (c kymaComponent) check(errs *problems, place string, taken map[string]bool) {
	errs.require(len(validation.IsDNS1123Label(c.Name)) == 0, "%s: %q is not a name of a component", place, c.Name)
	errs.require(len(validation.IsDNS1123Label(c.Namespace)) == 0, "%s: component %q: %q is not a namespace", place, c.Name, c.Namespace)
	errs.require(!taken[c.Name], "%s: component %q appears twice", place, c.Name)

	taken[c.Name] = true
}

// checkModulesOf checks that a plan to which instances of another plan can be changed has all their modules, because a runtime keeps
// its modules.
func (p *Plan) checkModulesOf(errs *problems, other *Plan) {
	if other.Kyma == nil {
		return
	}

	for _, module := range other.Kyma.Modules {
		has := p.Kyma != nil && slices.ContainsFunc(p.Kyma.Modules, func(own kymaModule) bool { return own.Name == module.Name })
		errs.require(has, "plan %s: it cannot be changed to plan %s, which lacks the Kyma module %s", other.Name, p.Name, module.Name)
	}
}
