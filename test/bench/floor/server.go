package floor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/google/uuid"
	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// ReadyPath is the readiness probe. It needs no user and does no work.
const ReadyPath = "/ready"

// Run serves the floors until ctx ends or the program gets SIGINT or SIGTERM. It reads its configuration from the environment.
func Run(ctx context.Context) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	config, err := configFromEnvironment()
	if err != nil {
		return err
	}

	rows, err := openRows(ctx, config.DSN)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, rows.db.Close()) }()

	handler, err := newHandler(config, rows)
	if err != nil {
		return err
	}

	server, err := httpserver.Listen(ctx, config.Address, handler, 0)
	if err != nil {
		return err
	}

	return server.Run(ctx)
}

func newHandler(config Config, rows rows) (http.Handler, error) {
	users, err := auth.ParseUsers(secret.String(config.Users))
	if err != nil {
		return nil, fmt.Errorf("reading the users: %w", err)
	}

	log, err := logging.New("floor", "info", os.Stderr)
	if err != nil {
		return nil, err
	}

	served := http.NewServeMux()
	served.Handle("GET /v2/catalog", fixed(config.FixedBytes))
	served.Handle("PUT /v2/service_instances/{instance_id}", httpserver.Endpoint(rows.provision))
	served.Handle("GET /v2/service_instances/{instance_id}/last_operation", httpserver.Endpoint(rows.lastOperation))

	all := http.NewServeMux()
	all.HandleFunc("GET "+ReadyPath, func(http.ResponseWriter, *http.Request) {})
	all.Handle("/v2/", httpserver.Wrap(served, httpserver.Log(log, clock.RealClock{}), auth.NewAuthorizer(users).Require(auth.RoleOSB)))

	return all, nil
}

// fixed answers every request with the same bytes.
func fixed(length int) httpserver.Endpoint {
	answer := httpserver.OK(bytes.Repeat([]byte("x"), length))

	return func(*http.Request) (httpserver.Response, error) { return answer, nil }
}

func (r rows) provision(request *http.Request) (httpserver.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return httpserver.Response{}, fmt.Errorf("reading the request: %w", err)
	}

	var details domain.ProvisionDetails
	if err := json.Unmarshal(body, &details); err != nil {
		return httpserver.Response{}, fmt.Errorf("decoding the request: %w", err)
	}

	operation := uuid.NewString()

	if err := r.accept(request.Context(), request.PathValue("instance_id"), details.OrganizationGUID, operation, string(body)); err != nil {
		return httpserver.Response{}, err
	}

	return httpserver.Response{Status: http.StatusAccepted, Body: apiresponses.ProvisioningResponse{OperationData: operation}}, nil
}

func (r rows) lastOperation(request *http.Request) (httpserver.Response, error) {
	found, err := r.operation(request.Context(), request.URL.Query().Get("operation"))
	if err != nil {
		return httpserver.Response{}, err
	}

	return httpserver.OK(found), nil
}
