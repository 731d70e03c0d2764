package service

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/kyma"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// kymaOf returns what decides on the Kyma of runtimes, and the control plane as an upstream system. The system is nil without a
// control plane. A kubeconfig that cannot be read is an error, so that the broker does not start with it.
func (s *Service) kymaOf(config Kyma, plans *catalog.Catalog) (kyma.Kyma, *upstream.System, error) {
	decides := kyma.Kyma{
		Catalog: plans, Version: config.Version,
		VersionsNamespace: config.VersionConfigNamespace, VersionsName: config.VersionConfigName,
	}
	if config.KubeconfigPath == "" {
		return decides, nil, nil
	}

	system := upstream.New(upstream.Options{
		Name: "control_plane", Title: "the control plane", Component: failure.ComponentControlPlane,
		Calls: config.Calls, Variable: "APP_CONTROL_PLANE_CALLS",
	})
	s.Metrics().MustRegister(system)

	decides.ControlPlane = &kyma.ControlPlane{KubeconfigPath: config.KubeconfigPath, Namespace: config.Namespace, Wrap: system.Transport}
	if err := decides.ControlPlane.Check(); err != nil {
		return decides, nil, fmt.Errorf("APP_CONTROL_PLANE_KUBECONFIG_PATH: %w", err)
	}

	return decides, system, nil
}

// recoveryOf returns the part that probes the control plane during an outage, or a part that does nothing without a control plane.
func (s *Service) recoveryOf(decides kyma.Kyma, system *upstream.System, stores stores, wake func()) lifecycle.Part {
	if system == nil {
		return lifecycle.Part{Name: "recovery of the control plane", Run: func(ctx context.Context) error {
			<-ctx.Done()

			return nil
		}}
	}

	return s.recovery("the control plane", system, decides.ControlPlane.Probe, stores, wake)
}

// withControlPlane returns the upstream systems that the operator API shows.
func withControlPlane(systems []*upstream.System, controlPlane *upstream.System) []*upstream.System {
	if controlPlane == nil {
		return systems
	}

	return append(systems, controlPlane)
}
