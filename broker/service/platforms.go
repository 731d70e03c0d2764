package service

import (
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/program/reload"
)

// loadFiles loads the files of the catalog, the quotas and the platforms. It sets stores.quotas.
func (s *Service) loadFiles(config Config, stores *stores) (*catalog.Catalog, func() auth.Platforms, error) {
	plans, err := loadCatalog(config)
	if err != nil {
		return nil, nil, err
	}

	if stores.quotas, err = s.loadQuotas(config.QuotasFile, plans, stores.instances); err != nil {
		return nil, nil, err
	}

	platforms, err := loadPlatforms(config.PlatformsFile, s.Access)

	return plans, platforms, err
}

// loadPlatforms reads the file with the platforms, and reloads it when it changes. It returns a function that returns the current
// platforms. If the file becomes invalid while the broker runs, the error is reported and the platforms do not change.
func loadPlatforms(path string, access *auth.Access) (func() auth.Platforms, error) {
	if path == "" {
		return func() auth.Platforms { return auth.Platforms{} }, nil
	}

	if _, open := access.Authorizer.Authenticator.(auth.NoAuthentication); open {
		return nil, errors.New("APP_PLATFORMS_FILE: platforms need authentication, so also set APP_AUTH_BASIC_USERS, APP_AUTH_BASIC_USERS_FILE, " +
			"APP_AUTH_OIDC_ISSUER_URL or APP_TLS_CLIENT_CA_FILE")
	}

	platforms, err := reload.Load("platforms", func(contents [][]byte) (auth.Platforms, error) {
		return auth.ParsePlatforms(contents[0])
	}, path)
	if err != nil {
		return nil, fmt.Errorf("APP_PLATFORMS_FILE: %w", err)
	}

	reload.Watch(access.Files, platforms, nil)

	return platforms.Get, nil
}
