package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/console/session"
	"github.com/environment-broker/environment-broker/broker/credentials"
	"github.com/environment-broker/environment-broker/broker/kyma"
	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/clients/bundleclient"
	"github.com/environment-broker/environment-broker/internal/clients/cis"
	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/clients/ias"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/clients/webhook"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/program/reload"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process/maintenance"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

// idleConnections is the maximum number of idle connections to an upstream that are kept open.
const idleConnections = 4

// upstreams are the clients of the configured upstreams, with their circuit breakers and their background work.
type upstreams struct {
	pool *accountPool
	kyma kyma.Kyma
	cis  *cis.Client
	edp  *edp.Client
	ias  *ias.Client
	avs  *avs.Client
	// lifecycleManager is nil if Lifecycle Manager is turned off.
	lifecycleManager *lifecyclemanager.Client
	// reconciler is nil if the Reconciler is turned off.
	reconciler *reconciler.Client
	// notifications records messages to customers. It is nil if the notification service is not configured.
	notifications upgrading.Notifications
	// webhooks sends messages to webhooks.
	webhooks *webhook.Client
	// bundles reads the bundle provisioner's objects. It is nil if the console shows no Bundles.
	bundles *bundleclient.Client
	// holders are the systems that store kubeconfigs of runtimes, keyed by name.
	holders map[string]credentials.Holder
	systems []*upstream.System
	parts   []lifecycle.Part
}

// connectUpstreams connects the upstreams that are configured, and registers their metrics.
func (s *Service) connectUpstreams(config Config, stores stores, plans *catalog.Catalog, access clusterclient.Access, wake func(),
) (upstreams, error) {
	var connected upstreams

	if err := errors.Join(
		s.connectAccountPool(&connected, config, stores, plans, wake),
		s.connectControlPlane(&connected, config, stores, plans, wake),
		s.connectCIS(&connected, config.CIS, stores, wake),
		s.connectEDP(&connected, config.EDP, stores, wake),
		s.connectIAS(&connected, config.IAS, stores, wake),
		s.connectAvS(&connected, config.AvS, stores, wake),
		s.connectNotifications(&connected, config.Notification, stores, wake),
		s.connectWebhooks(&connected, config, stores),
		s.connectReconciler(&connected, config.Reconciler, stores, wake),
	); err != nil {
		return connected, err
	}

	s.connectBundles(&connected, config.Console, stores, wake)
	s.addRenewal(&connected, stores, access, config)

	for _, system := range connected.systems {
		s.Metrics().MustRegister(system)
	}

	return connected, nil
}

// add adds an upstream with its background work.
func (o *upstreams) add(system *upstream.System, parts ...lifecycle.Part) {
	o.systems, o.parts = append(o.systems, system), append(o.parts, parts...)
}

func (s *Service) connectCIS(connected *upstreams, config cis.Config, stores stores, wake func()) error {
	if config.URL == "" {
		return nil
	}

	system, transport, err := s.connect(upstream.Options{
		Name: "cis", Title: "CIS", Component: failure.ComponentCIS, Calls: cisCalls,
	})
	if err != nil {
		return err
	}

	connected.cis = cis.New(config, transport)
	connected.add(system, s.recovery("CIS", system, connected.cis.Probe, stores, wake))

	return nil
}

// connectBundles connects the API server of the bundle provisioner for the console. It succeeds even if the server does not
// respond yet, or the kubeconfig file does not exist yet.
func (s *Service) connectBundles(connected *upstreams, config session.Config, stores stores, wake func()) {
	if !config.Enabled || config.BundlesKubeconfigPath == "" {
		return
	}

	system := upstream.New(upstream.Options{
		Name: "bundles", Title: "the Bundle API server", Component: failure.ComponentBundles, Calls: bundlesCalls,
	})

	connected.bundles = &bundleclient.Client{KubeconfigPath: config.BundlesKubeconfigPath, Wrap: system.Transport}
	connected.add(system, s.recovery("the Bundle API server", system, connected.bundles.Probe, stores, wake))
}

// bundlesCalls is the maximum number of concurrent calls to the bundle provisioner's API server. Only console pages and the probe
// during an outage call it.
const bundlesCalls = 8

// cisCalls is the maximum number of concurrent calls to CIS. The background job makes one call at a time; operators can start
// further calls.
const cisCalls = 5

func (s *Service) connectEDP(connected *upstreams, config edp.Config, stores stores, wake func()) error {
	if config.AdminURL == "" {
		return nil
	}

	system, transport, err := s.connect(upstream.Options{
		Name: "edp", Title: "EDP", Component: failure.ComponentEDP, Calls: config.Calls, Variable: "APP_EDP_CALLS",
	})
	if err != nil {
		return err
	}

	connected.edp = edp.New(config, transport)
	connected.add(system, s.recovery("EDP", system, connected.edp.Probe, stores, wake))

	return nil
}

func (s *Service) connectIAS(connected *upstreams, config ias.Config, stores stores, wake func()) error {
	if config.URL == "" {
		return nil
	}

	system, transport, err := s.connect(upstream.Options{
		Name: "ias", Title: "IAS", Component: failure.ComponentIAS, Calls: config.Calls, Variable: "APP_IAS_CALLS",
	})
	if err != nil {
		return err
	}

	connected.ias = ias.New(config, transport)
	connected.add(system, s.recovery("IAS", system, connected.ias.Probe, stores, wake))

	return nil
}

func (s *Service) connectAvS(connected *upstreams, config avs.Config, stores stores, wake func()) error {
	if config.API == "" {
		return nil
	}

	system, transport, err := s.connect(upstream.Options{
		Name: "avs", Title: "AvS", Component: failure.ComponentAvS, Calls: config.Calls, Variable: "APP_AVS_CALLS",
	})
	if err != nil {
		return err
	}

	connected.avs = avs.New(config, transport)
	connected.add(system, s.recovery("AvS", system, connected.avs.Probe, stores, wake), s.restoration(connected.avs, stores))

	return nil
}

func (s *Service) connectReconciler(connected *upstreams, config reconciler.Config, stores stores, wake func()) error {
	if config.URL == "" {
		return nil
	}

	system, transport, err := s.connect(upstream.Options{
		Name: "reconciler", Title: "the Reconciler", Component: failure.ComponentReconciler, Calls: config.Calls, Variable: "APP_RECONCILER_CALLS",
	})
	if err != nil {
		return err
	}

	connected.reconciler = reconciler.New(config, transport)
	connected.add(system, s.recovery("the Reconciler", system, connected.reconciler.Probe, stores, wake))

	return nil
}

// restoreEvery is the interval at which the broker looks for AvS evaluations that an upgrade has left in maintenance.
const restoreEvery = 15 * time.Second

// restoration returns the lifecycle.Part that restores the states of AvS evaluations after failed or canceled upgrades.
func (s *Service) restoration(client *avs.Client, stores stores) lifecycle.Part {
	maintained := maintenance.Maintenance{AvS: client}

	return lifecycle.Periodic{
		Name: "end of maintenance", Every: restoreEvery, Clock: clock.RealClock{}, Log: s.Log,
		Work: func(ctx context.Context) error { return maintained.RestoreAbandoned(ctx, stores.objects) },
	}.Part()
}

// connect returns an upstream with its circuit breaker, and a transport that uses it. The transport trusts the certificate
// authorities of the machine.
func (s *Service) connect(options upstream.Options) (*upstream.System, http.RoundTripper, error) {
	transport, err := reload.ClientTLS{IdleConnections: idleConnections}.Transport(s.Access.Files, options.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting %s: %w", options.Title, err)
	}

	system := upstream.New(options)

	return system, system.Transport(transport), nil
}
