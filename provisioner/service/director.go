package service

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/reload"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/registration"
)

// connectDirector adds Director to the parts, if Director is enabled. It does not call Director, so the Provisioner can start
// during an outage of Director. It only reads and checks the files with the credentials and the CA certificates. Director and its
// token endpoint have separate circuit breakers.
func (a *assembly) connectDirector(ctx context.Context) error {
	config := a.config
	if !config.Director.Enabled {
		return nil
	}

	credentials, err := config.directorCredentials(ctx)
	if err != nil {
		return err
	}

	transport, err := config.directorTransport(a.Access.Files)
	if err != nil {
		return err
	}

	if config.OAuth.SkipDirectorCertVerification {
		a.Log.Warn("APP_SKIP_DIRECTOR_CERT_VERIFICATION: the certificate of Director is not verified")
	}

	system := upstream.New(upstream.Options{
		Name: "director", Title: "Director", Component: failure.ComponentDirectorClient,
		Calls: config.Director.Calls, Variable: "APP_DIRECTOR_CALLS",
	})
	tokens := upstream.New(upstream.Options{
		Name: "director_tokens", Title: "the token endpoint of Director", Component: failure.ComponentDirectorToken,
		Calls: config.Director.Calls, Variable: "APP_DIRECTOR_CALLS",
	})

	client, err := director.New(director.Options{
		URL: config.Director.URL, Credentials: credentials, Transport: transport, Timeout: config.Director.Timeout,
		WrapTransport: system.Transport, WrapTokenTransport: tokens.Transport,
	})
	if err != nil {
		return fmt.Errorf("APP_DIRECTOR_URL: %w", err)
	}

	a.director, a.parts.Director, a.parts.Tokens = client, client, client
	a.registrar = &registration.Registrar{
		Director: client, Rows: a.runtimes, Project: config.Gardener.Project, Clock: clock.RealClock{}, Log: a.Log,
	}
	a.guard("Director", system, client.Probe)
	a.guard("Director's tokens", tokens, client.ProbeToken)
	a.background = append(a.background, registration.Caretaker{
		Director: client, Rows: a.runtimes, OfRuntime: a.parts.Shoots.OfRuntime, Clock: clock.RealClock{}, Log: a.Log,
	}.Part())

	return nil
}

// directorTransport returns the transport to Director and its token endpoint. When the file with the CA certificates changes, the
// transport trusts the new certificates without a restart.
func (c Config) directorTransport(files *reload.Watcher) (*reload.Transport, error) {
	trust := reload.ClientTLS{CAFile: c.Director.CAFile}
	if c.OAuth.SkipDirectorCertVerification {
		trust = reload.ClientTLS{SkipVerify: true}
	}

	transport, err := trust.Transport(files, "director")
	if err != nil {
		return nil, fmt.Errorf("APP_DIRECTOR_CA_FILE: %w", err)
	}

	return transport, nil
}

// directorCredentials returns the credentials from the configured file or, without a file, from the Secret. They are read again
// for each token, so that they can be rotated without a restart.
func (c Config) directorCredentials(ctx context.Context) (director.Credentials, error) {
	if file := director.File(c.Director.OAuthPath); file != "" {
		if _, err := file.Read(ctx); err != nil { // a missing file must prevent the start
			return nil, fmt.Errorf("APP_DIRECTOR_OAUTH_PATH: %w", err)
		}

		return file, nil
	}

	credentials, err := director.InCluster(c.OAuth.CredentialsNamespace, c.OAuth.CredentialsSecretName)
	if err != nil {
		return nil, fmt.Errorf("APP_DIRECTOR_OAUTH_PATH is empty, so the credentials for Director must come from a Secret: %w", err)
	}

	return credentials, nil
}
