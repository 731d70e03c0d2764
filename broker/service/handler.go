package service

import (
	"net/http"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/outside"
	"github.com/environment-broker/environment-broker/internal/runtimeaccess"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/resources"
)

// handlerParts are what the handlers work with.
type handlerParts struct {
	stores    stores
	gate      *auth.Gate
	access    runtimeaccess.Access
	processes []process.Process[environment.Data]
	systems   []*outside.Guard
	log       logrus.FieldLogger
	engine    operator.Processes
	wake      func()
}

// newHandler answers platforms and operators.
func newHandler(config Config, parts handlerParts) (http.Handler, error) {
	offer, err := catalog.Load(resources.Catalog(), catalog.Options{
		KubernetesVersion: config.KubernetesVersion, OperationTimeout: config.Engine.OperationTimeout,
	})
	if err != nil {
		return nil, err
	}

	stages := map[string][]string{}
	for _, process := range parts.processes {
		stages[process.Kind] = process.StageNames()
	}

	kept := audit.NewTrail(parts.stores.entries, parts.stores.db, clock.RealClock{}, parts.log)

	operators := operator.NewHandler(operator.Options{
		DB:          parts.stores.db,
		Instances:   parts.stores.instances,
		Operations:  parts.stores.operations,
		Trail:       kept,
		Entries:     parts.stores.entries,
		Gate:        parts.gate,
		Clock:       clock.RealClock{},
		Log:         parts.log,
		Kubeconfigs: parts.access,
		Endpoints:   operator.EndpointsOf(parts.access, clock.RealClock{}),
		OIDC:        operator.OIDC{IssuerURL: config.OIDC.IssuerURL, ClientID: config.OIDC.ClientID},
		Processes:   parts.engine,
		Wake:        parts.wake,
		Stages:      stages,
		Systems:     parts.systems,
	})

	return broker.NewHandler(broker.Options{
		DB:            parts.stores.db,
		Instances:     parts.stores.instances,
		Operations:    parts.stores.operations,
		Catalog:       offer,
		Wake:          parts.wake,
		Clock:         clock.RealClock{},
		Log:           parts.log,
		Trail:         kept,
		Gate:          parts.gate,
		DefaultRegion: config.DefaultRequestRegion,
		Strict:        config.OSBStrict,
		DashboardURL:  config.DashboardURL,
		PublicURL:     config.PublicURL,
		Otherwise:     operators,
	}), nil
}
