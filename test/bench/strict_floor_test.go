package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"
)

// floorStrict is the environment variable that selects the strict floor.
const (
	floorStrict = "FLOOR_STRICT"
	strictly    = floorStrict + "=true"
)

// The strict floor does the same work as the floor with as little code as possible: plain net/http, pgx instead of database/sql and
// lib/pq, no log line, no authentication, no limits. Both floors use the same tables and the same number of connections.

// runStrictFloor serves the strict floor until the program gets SIGINT or SIGTERM.
func runStrictFloor() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	config, err := pgxpool.ParseConfig(os.Getenv(floorDSN))
	if err != nil {
		return fmt.Errorf("reading the address of the database: %w", err)
	}

	config.MaxConns = floorConnections

	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("opening the database: %w", err)
	}
	defer pool.Close()

	f := strictFloor{pool}
	api := http.NewServeMux()
	api.HandleFunc("GET "+floorReady, func(http.ResponseWriter, *http.Request) {})
	api.HandleFunc("PUT /v2/service_instances/{instance_id}", answer(f.provision))
	api.HandleFunc("GET /v2/service_instances/{instance_id}/last_operation", answer(f.lastOperation))

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", os.Getenv(floorAddress))
	if err != nil {
		return err
	}

	server := &http.Server{Handler: api, ReadHeaderTimeout: programTimeout}

	go func() {
		<-ctx.Done()
		_ = server.Close() // The load has ended.
	}()

	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}

// strictFloor handles the requests to the strict floor.
type strictFloor struct{ pool *pgxpool.Pool }

// answer returns a handler that writes the status and the JSON body returned by respond.
func answer(respond func(*http.Request) (status int, body any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, body, err := respond(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)

			return
		}

		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // The client reports incomplete responses.
	}
}

// provision inserts an instance and an operation in one transaction.
func (f strictFloor) provision(r *http.Request) (status int, response any, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, nil, err
	}

	var details domain.ProvisionDetails
	if err := json.Unmarshal(body, &details); err != nil {
		return 0, nil, err
	}

	instance, operation := r.PathValue("instance_id"), uuid.NewString()

	err = pgx.BeginFunc(r.Context(), f.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(r.Context(), `INSERT INTO floor_instances (id, tenant, request) VALUES ($1, $2, $3)`,
			instance, details.OrganizationGUID, string(body)); err != nil {
			return err
		}

		_, err := tx.Exec(r.Context(), `INSERT INTO floor_operations (id, instance_id, state, description, payload) VALUES ($1, $2, $3, $4, $5)`,
			operation, instance, "pending", "", string(body))

		return err
	})

	return http.StatusAccepted, apiresponses.ProvisioningResponse{OperationData: operation}, err
}

// lastOperation reads the row of one operation.
func (f strictFloor) lastOperation(r *http.Request) (status int, response any, err error) {
	var operation struct {
		State       string `json:"state"`
		Description string `json:"description"`
	}

	err = f.pool.QueryRow(r.Context(), `SELECT state, description FROM floor_operations WHERE id = $1`, r.URL.Query().Get("operation")).
		Scan(&operation.State, &operation.Description)

	return http.StatusOK, operation, err
}
