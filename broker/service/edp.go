package service

import (
	"fmt"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/edp"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/reload"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// idleConnections is the number of idle connections to an outside system.
const idleConnections = 4

// outsideSystems are the clients of the configured outside systems, with their guards and the parts that probe them.
type outsideSystems struct {
	edp     *edp.Client
	systems []*upstream.System
	parts   []lifecycle.Part
}

// outside connects the outside systems that are configured.
func (s *Service) outside(config Config, stores stores, wake func()) (outsideSystems, error) {
	var connected outsideSystems

	if config.EDP.AdminURL == "" {
		return connected, nil
	}

	system := upstream.New(upstream.Options{
		Name: "edp", Title: "EDP", Component: failure.ComponentEDP, Calls: config.EDP.Calls, Variable: "APP_EDP_CALLS",
	})

	transport, err := reload.ClientTLS{IdleConnections: idleConnections}.Transport(s.Access.Files, "edp")
	if err != nil {
		return connected, fmt.Errorf("connecting EDP: %w", err)
	}

	connected.edp = edp.New(config.EDP, system.Transport(transport))
	connected.systems = append(connected.systems, system)
	connected.parts = append(connected.parts, lifecycle.Part{Name: "recovery of EDP", Run: upstream.Recovery{
		System: system, Probe: connected.edp.Probe, Operations: stores.operations, Wake: wake, Clock: clock.RealClock{}, Log: s.Log,
	}.Run})

	s.Metrics().MustRegister(system)

	return connected, nil
}
