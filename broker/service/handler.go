package service

import (
	"net/http"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/runtimeaccess"
	"github.com/environment-broker/environment-broker/resources"
)

// handler answers platforms and operators.
func (s *Service) handler(config Config, stores stores, users auth.Users, access runtimeaccess.Access, wake func(),
) (http.Handler, error) {
	offer, err := catalog.Load(resources.Catalog(), catalog.Options{
		KubernetesVersion: config.KubernetesVersion, OperationTimeout: config.Engine.OperationTimeout,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // says what is wrong
	}

	return broker.NewHandler(broker.Options{
		DB:            stores.db,
		Instances:     stores.instances,
		Operations:    stores.operations,
		Catalog:       offer,
		Wake:          wake,
		Clock:         clock.RealClock{},
		Log:           s.log,
		Users:         users,
		DefaultRegion: config.DefaultRequestRegion,
		Strict:        config.OSBStrict,
		DashboardURL:  config.DashboardURL,
		PublicURL:     config.PublicURL,
	}), nil
}
