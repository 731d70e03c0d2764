package catalog

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// runtimeAgent is the component that every Kyma installation by the Provisioner must contain. The Provisioner rejects orders
// without it.
const runtimeAgent = "compass-runtime-agent"

// kymaPlan configures Kyma on the runtimes of a plan.
type kymaPlan struct {
	// Profile is Evaluation, Production or empty.
	Profile string `json:"profile"`
	// Components are installed on every runtime, in this order and before the modules.
	Components []kymaComponent `json:"components"`
	// AdditionalComponents maps a Kyma version to the components that are installed only with that version, after Components.
	AdditionalComponents map[string][]kymaComponent `json:"additionalComponents"`
	// Modules are the components that users can choose from, in installation order.
	Modules []kymaModule `json:"modules"`
}

// kymaComponent is a component of a Kyma release. Configuration overrides values of the release. It must not contain secrets,
// because anyone with access to the catalog's files can read it; secrets belong in Kubernetes Secrets in the control plane.
type kymaComponent struct {
	Name          string            `json:"name"`
	Namespace     string            `json:"namespace"`
	Configuration map[string]string `json:"configuration"`
}

// kymaModule is a component that users can choose.
type kymaModule struct {
	kymaComponent

	// DisplayName is shown in the order forms of marketplaces. The default is Name.
	DisplayName string `json:"displayName"`
	// Default reports whether orders without the modules parameter get the module.
	Default bool `json:"default"`
	// DependsOn lists the other modules that this module requires. A choice without them is rejected.
	DependsOn []string `json:"dependsOn"`
}

// InstallsKyma reports whether new runtimes of the plan get Kyma.
func (p *Plan) InstallsKyma() bool { return p.Kyma != nil || p.LifecycleManager != nil }

// limitKyma removes the parts of the plan that the options switch off. It removes the kyma section if there is no default Kyma
// version, and the lifecycleManager section unless Lifecycle Manager is on. It removes the modules parameter if no section with
// modules remains, and the kymaVersion parameter unless orders may choose the version and Lifecycle Manager is off. A plan with
// Lifecycle Manager keeps its kyma section, for runtimes on which the Reconciler has installed Kyma. The plan must have passed
// content.check.
func (p *Plan) limitKyma(options Options) {
	if options.KymaVersion == "" {
		p.Kyma = nil
	}

	if !options.LifecycleManager {
		p.LifecycleManager = nil
	}

	var off []string

	if len(p.offeredModules()) == 0 {
		off = append(off, paramModules)
	}

	if p.Kyma == nil || p.LifecycleManager != nil || !options.KymaVersionOnDemand {
		off = append(off, paramKymaVersion)
	}

	for _, names := range []*[]string{&p.Parameters, &p.Updates, &p.Required} {
		*names = slices.DeleteFunc(*names, func(name string) bool { return slices.Contains(off, name) })
	}
}

// orderedKyma returns the Kyma configuration of a new runtime, or nil if the plan does not install Kyma.
func (p *Plan) orderedKyma(given parameters, violations *Violations) *environment.Kyma {
	if !p.InstallsKyma() {
		return nil
	}

	ordered := &environment.Kyma{
		Version: given.KymaVersion, Ordered: given.KymaVersion != "", Modules: p.modules(given.Modules, violations),
	}
	if p.LifecycleManager != nil {
		ordered.Installer = environment.InstallerLifecycleManager
	}

	return ordered
}

// Installation returns the components that the Provisioner or the Reconciler installs for a version and the chosen modules. If
// the plan's files have changed since the order and no longer contain Kyma or one of the modules, the error is of kind
// failure.Permanent.
func (p *Plan) Installation(kyma environment.Kyma) (*environment.KymaInstallation, error) {
	if p.Kyma == nil {
		return nil, failure.New(failure.Permanent, "plan %s no longer installs Kyma: an operator must restore the kyma section of the plan and set APP_KYMA_VERSION", p.Name)
	}

	installation := &environment.KymaInstallation{Version: kyma.Version, Profile: p.Kyma.Profile}

	for _, component := range slices.Concat(p.Kyma.Components, p.Kyma.AdditionalComponents[kyma.Version]) {
		installation.Components = append(installation.Components, component.installed())
	}

	for _, name := range kyma.Modules {
		index := slices.IndexFunc(p.Kyma.Modules, func(module kymaModule) bool { return module.Name == name })
		if index < 0 {
			return nil, failure.New(failure.Permanent, "plan %s no longer has the module %q: choose other modules", p.Name, name)
		}

		installation.Components = append(installation.Components, p.Kyma.Modules[index].installed())
	}

	return installation, nil
}

// installed converts the component to an environment.KymaComponent, whose configuration entries are sorted by key.
func (c kymaComponent) installed() environment.KymaComponent {
	component := environment.KymaComponent{Name: c.Name, Namespace: c.Namespace}
	for _, key := range slices.Sorted(maps.Keys(c.Configuration)) {
		component.Configuration = append(component.Configuration, environment.KymaEntry{Key: key, Value: secret.String(c.Configuration[key])})
	}

	return component
}

// offered returns the modules that users can choose from, or none if k is nil.
func (k *kymaPlan) offered() []offeredModule {
	if k == nil {
		return nil
	}

	var modules []offeredModule
	for _, module := range k.Modules {
		modules = append(modules, offeredModule{module.Name, module.DisplayName, module.Default, module.DependsOn})
	}

	return modules
}

// bullet returns the bullet point that lists the components for marketplaces.
func (k *kymaPlan) bullet() string {
	names := make([]string, 0, len(k.Components))
	for _, component := range k.Components {
		names = append(names, component.Name)
	}

	return "Kyma with " + strings.Join(names, ", ")
}

// kymaVersions matches the Kyma versions that the Provisioner accepts.
var kymaVersions = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// IsKymaVersion reports whether the string is a well-formed Kyma version.
func IsKymaVersion(text string) bool { return kymaVersions.MatchString(text) }

// checkKyma adds an error for each mistake in the plan's kyma and lifecycleManager sections.
func (p *Plan) checkKyma(errs *problems, place string) {
	errs.require(!p.OwnCluster || p.Kyma == nil, "%s: a plan with ownCluster cannot have kyma, because the Provisioner does not know its clusters", place)
	errs.require(p.Kyma != nil || !p.takes(paramKymaVersion), "%s: parameter %s requires kyma", place, paramKymaVersion)
	errs.require(!p.takes(paramModules) || p.Kyma != nil && len(p.Kyma.Modules) > 0 || p.LifecycleManager != nil && len(p.LifecycleManager.Modules) > 0,
		"%s: the parameter %s requires modules in the kyma or lifecycleManager section", place, paramModules)
	p.checkLifecycleManager(errs, place)

	if p.Kyma == nil {
		return
	}

	place += ": kyma"
	errs.require(slices.Contains([]string{"", "Evaluation", "Production"}, p.Kyma.Profile),
		"%s: profile %q is neither Evaluation nor Production", place, p.Kyma.Profile)
	errs.require(len(p.Kyma.Components) > 0, "%s: there are no components", place)

	always := map[string]bool{}
	for _, component := range p.Kyma.Components {
		component.check(errs, place, always)
	}

	for _, module := range p.Kyma.Modules {
		module.check(errs, place, always)
	}

	p.checkModules(errs, place, p.Kyma.offered())

	for version, components := range p.Kyma.AdditionalComponents {
		errs.require(kymaVersions.MatchString(version), "%s: additionalComponents: %q is not a version", place, version)

		taken := maps.Clone(always)
		for _, component := range components {
			component.check(errs, place+": additionalComponents "+version, taken)
		}
	}

	errs.text(place+": the list of component names for users", p.Kyma.bullet())
}

// checkAgent checks that a plan whose Kyma the Provisioner installs has the component that the Provisioner requires.
func (p *Plan) checkAgent(errs *problems, place string, installer environment.KymaInstaller) {
	if p.Kyma == nil || cmp.Or(installer, environment.InstallerProvisioner) != environment.InstallerProvisioner {
		return
	}

	errs.require(slices.ContainsFunc(p.Kyma.Components, func(one kymaComponent) bool { return one.Name == runtimeAgent }),
		"%s: kyma: components must contain %s, which the Provisioner requires", place, runtimeAgent)
}

// check adds an error if the component is invalid or its name is in taken, and then adds the name to taken.
func (c kymaComponent) check(errs *problems, place string, taken map[string]bool) {
	errs.require(len(validation.IsDNS1123Label(c.Name)) == 0, "%s: %q is not a valid component name", place, c.Name)
	errs.require(len(validation.IsDNS1123Label(c.Namespace)) == 0, "%s: component %q: %q is not a namespace", place, c.Name, c.Namespace)
	errs.require(!taken[c.Name], "%s: component %q appears twice", place, c.Name)

	taken[c.Name] = true
}
