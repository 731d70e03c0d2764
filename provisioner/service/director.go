package service

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/reload"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// directory is the client of Director and its guards. It is nil without Director; its methods accept that.
type directory struct {
	client         *director.Client
	system, tokens *upstream.System
	project        string
	log            logrus.FieldLogger
}

// connectDirector builds the configured client. It calls nothing, so the Provisioner starts while Director is unavailable; only
// the credentials of a file are read and checked.
func connectDirector(ctx context.Context, config Config, files *reload.Watcher, log logrus.FieldLogger) (*directory, error) {
	if !config.Director.Enabled {
		return nil, nil
	}

	d := &directory{
		system: upstream.New(upstream.Options{
			Name: "director", Title: "Director", Component: failure.ComponentDirectorClient,
			Calls: config.Director.Calls, Variable: "APP_DIRECTOR_CALLS",
		}),
		tokens: upstream.New(upstream.Options{
			Name: "director_tokens", Title: "the token endpoint of Director", Component: failure.ComponentDirectorToken,
			Calls: config.Director.Calls, Variable: "APP_DIRECTOR_CALLS",
		}),
		project: config.Gardener.Project, log: log,
	}

	credentials, err := config.directorCredentials(ctx)
	if err != nil {
		return nil, err
	}

	transport, err := config.directorTransport(files)
	if err != nil {
		return nil, err
	}

	if config.OAuth.SkipDirectorCertVerification {
		log.Warn("APP_SKIP_DIRECTOR_CERT_VERIFICATION: the certificate of Director is not verified")
	}

	d.client, err = director.New(director.Options{
		URL: config.Director.URL, Credentials: credentials, Transport: transport,
		WrapTransport: d.system.Transport, WrapTokenTransport: d.tokens.Transport,
	})
	if err != nil {
		return nil, fmt.Errorf("APP_DIRECTOR_URL: %w", err)
	}

	return d, nil
}

// directorTransport returns the transport to Director and its token endpoint. It reloads the file of authorities when that
// changes.
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

// directorCredentials returns the credentials of the file or, without one, of the Secret.
func (c Config) directorCredentials(ctx context.Context) (director.Credentials, error) {
	if file := director.File(c.Director.OAuthPath); file != "" {
		if _, err := file.Read(ctx); err != nil { // read again for each token: the file may change
			return nil, fmt.Errorf("APP_DIRECTOR_OAUTH_PATH: %w", err)
		}

		return file, nil
	}

	credentials, err := director.InCluster(c.OAuth.CredentialsNamespace, c.OAuth.CredentialsSecretName)
	if err != nil {
		return nil, fmt.Errorf("APP_DIRECTOR_OAUTH_PATH is empty, reading the credentials from a Secret: %w", err)
	}

	return credentials, nil
}

// asDirector returns the client for the processes, or nil.
func (d *directory) asDirector() registration.Director {
	if d == nil {
		return nil
	}

	return d.client
}

// asTokens returns the client for tokens of agents, or nil.
func (d *directory) asTokens() agent.Tokens {
	if d == nil {
		return nil
	}

	return d.client
}

// registrar returns the registrar of new runtimes, or nil.
func (d *directory) registrar(rows *runtimes.Store) orders.Registrar {
	if d == nil {
		return nil
	}

	return &registration.Registrar{Director: d.client, Rows: rows, Project: d.project, Clock: clock.RealClock{}, Log: d.log}
}

// collectors returns the metrics of the guards.
func (d *directory) collectors() []prometheus.Collector {
	if d == nil {
		return nil
	}

	return []prometheus.Collector{d.system, d.tokens}
}

// parts returns the background jobs: the probes that close the circuit breakers again, and the caretaker.
func (d *directory) parts(rows *runtimes.Store, operationStore *operations.Store, wake func()) []lifecycle.Part {
	if d == nil {
		return nil
	}

	recovery := func(name string, system *upstream.System, probe func(context.Context) error) lifecycle.Part {
		return lifecycle.Part{Name: name, Run: upstream.Recovery{
			System: system, Probe: probe, Operations: operationStore, Wake: wake, Clock: clock.RealClock{}, Log: d.log,
		}.Run}
	}

	return []lifecycle.Part{
		recovery("recovery of Director", d.system, d.client.Probe),
		recovery("recovery of Director's tokens", d.tokens, d.client.ProbeToken),
		{Name: "caretaker of registrations", Run: registration.Caretaker{
			Director: d.client, Rows: rows, Clock: clock.RealClock{}, Log: d.log,
		}.Run},
	}
}
