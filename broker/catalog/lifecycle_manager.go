package catalog

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// lifecycleManagerPlan configures the Kyma that Lifecycle Manager installs on the runtimes of a plan.
type lifecycleManagerPlan struct {
	// Channel is the release channel of the modules, such as regular. If it is empty, the channel of the template applies.
	Channel string `json:"channel"`
	// Template is a Kyma resource as YAML. A template in the control plane takes precedence. If there is no template, the resource
	// is empty.
	Template string `json:"template"`
	// Modules are the modules that users choose from. If there are none, the modules of the template apply.
	Modules []lifecycleManagerModule `json:"modules"`
}

// lifecycleManagerModule is a module that Lifecycle Manager can install.
type lifecycleManagerModule struct {
	Name string `json:"name"`
	// DisplayName is shown in the order forms of marketplaces. The default is Name.
	DisplayName string `json:"displayName"`
	// Default reports whether orders without the modules parameter get the module.
	Default bool `json:"default"`
	// DependsOn lists the other modules that this module requires. A choice without them is rejected.
	DependsOn []string `json:"dependsOn"`
	// Channel and CustomResourcePolicy are copied to the Kyma resource unless they are empty.
	Channel              string `json:"channel"`
	CustomResourcePolicy string `json:"customResourcePolicy"`
}

// offered returns the modules that users can choose from, or none if l is nil.
func (l *lifecycleManagerPlan) offered() []offeredModule {
	if l == nil {
		return nil
	}

	var modules []offeredModule
	for _, module := range l.Modules {
		modules = append(modules, offeredModule{module.Name, module.DisplayName, module.Default, module.DependsOn})
	}

	return modules
}

// channels matches the channel names that the schema of the Kyma resource allows.
var channels = regexp.MustCompile(`^[a-z]{3,32}$`)

// checkLifecycleManager adds an error for each mistake in the plan's lifecycleManager section.
func (p *Plan) checkLifecycleManager(errs *problems, place string) {
	if p.LifecycleManager == nil {
		return
	}

	place += ": lifecycleManager"
	errs.require(!p.OwnCluster, "%s: a plan with ownCluster cannot have this section", place)
	errs.require(p.LifecycleManager.Channel == "" || channels.MatchString(p.LifecycleManager.Channel),
		"%s: channel %q must have 3 to 32 lower-case letters", place, p.LifecycleManager.Channel)

	if p.LifecycleManager.Template != "" {
		_, err := lifecyclemanager.ParseTemplate(p.LifecycleManager.Template)
		errs.require(err == nil, "%s: template %v", place, err)
	}

	names := map[string]bool{}

	for _, module := range p.LifecycleManager.Modules {
		errs.require(len(validation.IsDNS1123Label(module.Name)) == 0, "%s: %q is not a valid module name", place, module.Name)
		errs.require(!names[module.Name], "%s: module %q appears twice", place, module.Name)
		errs.require(module.Channel == "" || channels.MatchString(module.Channel),
			"%s: module %s: channel %q must have 3 to 32 lower-case letters", place, module.Name, module.Channel)
		errs.require(slices.Contains([]string{"", "CreateAndDelete", "Ignore"}, module.CustomResourcePolicy),
			"%s: module %s: customResourcePolicy %q is neither CreateAndDelete nor Ignore", place, module.Name, module.CustomResourcePolicy)

		names[module.Name] = true
	}

	p.checkModules(errs, place, p.LifecycleManager.offered())
}

// LifecycleManagerSettings returns the settings with which Lifecycle Manager installs an instance's Kyma. If the plan no longer
// has the lifecycleManager section or one of the modules, because its files or the broker's configuration have changed since the
// order, the error is of kind failure.Permanent.
func (p *Plan) LifecycleManagerSettings(kyma environment.Kyma) (lifecyclemanager.Settings, error) {
	plan := p.LifecycleManager
	if plan == nil || !kyma.InstalledBy(environment.InstallerLifecycleManager) {
		return lifecyclemanager.Settings{}, failure.New(failure.Permanent,
			"plan %s no longer installs Kyma: an operator must restore the lifecycleManager section of the plan and set APP_LIFECYCLE_MANAGER_ENABLED", p.Name)
	}

	settings := lifecyclemanager.Settings{Template: plan.Template, Channel: plan.Channel}
	if len(plan.Modules) == 0 && len(kyma.Modules) == 0 {
		return settings, nil
	}

	settings.Modules = []lifecyclemanager.Module{}

	for _, name := range kyma.Modules {
		index := slices.IndexFunc(plan.Modules, func(module lifecycleManagerModule) bool { return module.Name == name })
		if index < 0 {
			return lifecyclemanager.Settings{}, failure.New(failure.Permanent, "plan %s no longer has the module %q: choose other modules", p.Name, name)
		}

		module := plan.Modules[index]
		settings.Modules = append(settings.Modules, lifecyclemanager.Module{
			Name: name, Channel: module.Channel, CustomResourcePolicy: module.CustomResourcePolicy,
		})
	}

	return settings, nil
}
