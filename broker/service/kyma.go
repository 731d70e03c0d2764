package service

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/credentials"
	"github.com/environment-broker/environment-broker/broker/kyma"
	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// checkKyma checks which systems install Kyma on new runtimes. The Provisioner cannot be combined with another installer: an
// operator who turns on the Reconciler or Lifecycle Manager expects that system to install Kyma. docs/operator/kyma.md lists all
// combinations.
func (c Config) checkKyma() error {
	errs := []error{c.LifecycleManager.Check(c.Kyma.KubeconfigPath)}

	switch {
	case c.Kyma.Installer == environment.InstallerReconciler:
		if c.Reconciler.URL == "" {
			errs = append(errs, fmt.Errorf("APP_KYMA_INSTALLER: %s also needs APP_RECONCILER_URL", c.Kyma.Installer))
		}
	case c.Kyma.Installer != environment.InstallerProvisioner:
		errs = append(errs, fmt.Errorf("APP_KYMA_INSTALLER: %q is neither %s nor %s", c.Kyma.Installer,
			environment.InstallerProvisioner, environment.InstallerReconciler))
	case c.Kyma.Version == "": // the Provisioner installs no Kyma
	default:
		if c.Reconciler.URL != "" {
			errs = append(errs, c.secondInstaller("APP_RECONCILER_URL"))
		}

		if c.LifecycleManager.Enabled {
			errs = append(errs, c.secondInstaller("APP_LIFECYCLE_MANAGER_ENABLED"))
		}
	}

	return errors.Join(errs...)
}

// secondInstaller returns the error for a variable that turns on an installer in addition to the Provisioner.
func (c Config) secondInstaller(variable string) error {
	return fmt.Errorf("%s: the Provisioner installs Kyma %s on new runtimes, so no other system may do so: set APP_KYMA_INSTALLER=%s, or unset %s or "+
		"APP_KYMA_VERSION", variable, c.Kyma.Version, environment.InstallerReconciler, variable)
}

// addRenewal adds the lifecycle.Part that renews the kubeconfigs that Lifecycle Manager and the Reconciler store, unless both
// systems are turned off. It always registers the metrics of these kubeconfigs.
func (s *Service) addRenewal(connected *upstreams, stores stores, access clusterclient.Access, config Config) {
	holders := map[string]credentials.Holder{}

	if connected.lifecycleManager != nil {
		holders[environment.SystemLifecycleManager] = credentials.LifecycleManager{
			Client: connected.lifecycleManager, Recorded: stores.objects, Kyma: connected.kyma,
		}
	}

	if connected.reconciler != nil {
		holders[environment.SystemReconciler] = credentials.Reconciler{
			Client: connected.reconciler, Sent: stores.objects, Kyma: connected.kyma, ShootDomain: config.Gardener.ShootDomain,
			Timeout: config.Reconciler.Timeout,
			Clock:   clock.RealClock{},
		}
	}

	connected.holders = holders
	systems := slices.Sorted(maps.Keys(holders))
	results := credentials.NewResults(systems...)
	s.Metrics().MustRegister(results, credentials.Metrics{Objects: stores.objects, Systems: systems, Clock: clock.RealClock{}, Log: s.Log})

	if len(holders) == 0 {
		return
	}

	renewer := credentials.Renewer{
		DB: s.DB, Instances: stores.instances, Objects: stores.objects, Events: stores.events, Reports: stores.reports, Access: access,
		Holders: holders, Validity: clusterclient.Validity, Results: results, Clock: clock.RealClock{}, Log: s.Log,
	}
	connected.parts = append(connected.parts, renewer.Part())
}

// repair returns the lifecycle.Part that repairs the credentials for Service Manager in runtimes, and registers its metric. An
// interval of 0 turns the repair off.
func (s *Service) repair(stores stores, access clusterclient.Access, interval time.Duration) lifecycle.Part {
	checks := credentials.NewChecks()
	s.Metrics().MustRegister(checks)

	return credentials.Repairer{
		DB: s.DB, Instances: stores.instances, Operations: stores.operations, Events: stores.events, Reports: stores.reports, Runtimes: access,
		Results: checks, Interval: interval, Clock: clock.RealClock{}, Log: s.Log,
	}.Part()
}

// connectControlPlane sets connected.kyma, which chooses the Kyma version and components of runtimes, and connects the control
// plane if one is configured. If the kubeconfig cannot be read, it returns an error, and the broker does not start.
func (s *Service) connectControlPlane(connected *upstreams, all Config, stores stores, plans *catalog.Catalog, wake func()) error {
	config := all.Kyma
	connected.kyma = kyma.Kyma{
		Catalog: plans, Version: config.Version,
		VersionsNamespace: config.VersionConfigNamespace, VersionsName: config.VersionConfigName,
		ShootDomain: all.Gardener.ShootDomain,
	}
	if config.KubeconfigPath == "" {
		return nil
	}

	system := upstream.New(upstream.Options{
		Name: "control_plane", Title: "the control plane", Component: failure.ComponentControlPlane,
		Calls: config.Calls, Variable: "APP_CONTROL_PLANE_CALLS",
	})

	plane := &kyma.ControlPlane{KubeconfigPath: config.KubeconfigPath, Namespace: config.Namespace, Wrap: system.Transport}
	if err := plane.Check(); err != nil {
		return fmt.Errorf("APP_CONTROL_PLANE_KUBECONFIG_PATH: %w", err)
	}

	connected.kyma.ControlPlane = plane
	if all.LifecycleManager.Enabled {
		connected.lifecycleManager = lifecyclemanager.New(plane, kyma.CallTimeout)
	}

	connected.add(system, s.recovery("the control plane", system, plane.Probe, stores, wake))

	return nil
}
