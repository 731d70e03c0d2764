package service

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/edp"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/ias"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/reload"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// idleConnections is the number of idle connections to an outside system.
const idleConnections = 4

// outsideSystems are the clients of the configured outside systems, with their guards and the parts that probe them.
type outsideSystems struct {
	edp     *edp.Client
	ias     *ias.Client
	systems []*upstream.System
	parts   []lifecycle.Part
}

// outside connects the outside systems that are configured.
func (s *Service) outside(config Config, stores stores, wake func()) (outsideSystems, error) {
	var connected outsideSystems

	if config.EDP.AdminURL != "" {
		system := upstream.New(upstream.Options{
			Name: "edp", Title: "EDP", Component: failure.ComponentEDP, Calls: config.EDP.Calls, Variable: "APP_EDP_CALLS",
		})

		transport, err := s.outsideTransport(system, "edp")
		if err != nil {
			return connected, err
		}

		connected.edp = edp.New(config.EDP, transport)
		connected.add(s.outsideRecovery(system, "recovery of EDP", connected.edp.Probe, stores, wake), system)
	}

	if config.IAS.URL != "" {
		system := upstream.New(upstream.Options{
			Name: "ias", Title: "IAS", Component: failure.ComponentIAS, Calls: config.IAS.Calls, Variable: "APP_IAS_CALLS",
		})

		transport, err := s.outsideTransport(system, "ias")
		if err != nil {
			return connected, err
		}

		connected.ias = ias.New(config.IAS, transport)
		connected.add(s.outsideRecovery(system, "recovery of IAS", connected.ias.Probe, stores, wake), system)
	}

	for _, system := range connected.systems {
		s.Metrics().MustRegister(system)
	}

	return connected, nil
}

// add adds a system with the part that probes it.
func (o *outsideSystems) add(part lifecycle.Part, system *upstream.System) {
	o.systems, o.parts = append(o.systems, system), append(o.parts, part)
}

// outsideTransport returns a transport to the system, with its guard. It trusts the certificate authorities of the machine.
func (s *Service) outsideTransport(system *upstream.System, name string) (http.RoundTripper, error) {
	transport, err := reload.ClientTLS{IdleConnections: idleConnections}.Transport(s.Access.Files, name)
	if err != nil {
		return nil, fmt.Errorf("connecting %s: %w", name, err)
	}

	return system.Transport(transport), nil
}

// outsideRecovery returns the part that probes the system during an outage.
func (s *Service) outsideRecovery(system *upstream.System, name string, probe func(context.Context) error, stores stores, wake func()) lifecycle.Part {
	return lifecycle.Part{Name: name, Run: upstream.Recovery{
		System: system, Probe: probe, Operations: stores.operations, Wake: wake, Clock: clock.RealClock{}, Log: s.Log,
	}.Run}
}
