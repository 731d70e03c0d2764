package service

import (
	"fmt"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/kyma"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// connectControlPlane sets what decides on the Kyma of runtimes, and connects the control plane if one is configured. A kubeconfig that
// cannot be read is an error, so that the broker does not start with it.
func (s *Service) connectControlPlane(connected *upstreams, config Kyma, stores stores, plans *catalog.Catalog, wake func()) error {
	connected.kyma = kyma.Kyma{
		Catalog: plans, Version: config.Version,
		VersionsNamespace: config.VersionConfigNamespace, VersionsName: config.VersionConfigName,
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
	connected.add(system, s.recovery("the control plane", system, plane.Probe, stores, wake))

	return nil
}
