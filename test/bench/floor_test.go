package bench

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
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/test/harness"
)

// The floor is a server that does only the unavoidable work for some of the broker's requests. It uses the broker's HTTP server,
// Basic authentication, log line, database driver and pool size. Like the broker, it runs as a separate process.

// Environment variables of the floor. The data source name is for lib/pq.
const (
	floorAddress      = "FLOOR_ADDRESS"
	floorDSN          = "FLOOR_DSN"
	floorCatalogBytes = "FLOOR_CATALOG_BYTES"
)

// floorReady is the path of the floor's readiness probe. The probe needs no user and does no work.
const floorReady = "/ready"

// floorList is the path of a list in pages of pageSize entries. A page contains the entries with numbers below the query parameter
// "before".
const (
	floorList = "/v2/list"
	pageSize  = 100
)

// floorConnections and floorConnectionAge equal the pool settings of package storage.
const (
	floorConnections   = 12
	floorConnectionAge = 30 * time.Minute
)

// floorTables contains the SQL statements that create the floor's tables if they do not exist.
const floorTables = `
CREATE TABLE IF NOT EXISTS floor_list (number BIGINT PRIMARY KEY, entry TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS floor_instances (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, request TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS floor_operations (
	id TEXT PRIMARY KEY, instance_id TEXT NOT NULL, state TEXT NOT NULL, description TEXT NOT NULL, payload TEXT NOT NULL)`

// floor handles the floor's requests with prepared statements.
type floor struct {
	db                                                           *sqlx.DB
	insertInstance, insertOperation, selectOperation, selectPage *sqlx.Stmt
}

// runFloor serves the floor until the program gets SIGINT or SIGTERM.
func runFloor() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	db, err := sqlx.Open("postgres", os.Getenv(floorDSN))
	if err != nil {
		return fmt.Errorf("opening the database: %w", err)
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	db.SetMaxOpenConns(floorConnections)
	db.SetMaxIdleConns(floorConnections)
	db.SetConnMaxLifetime(floorConnectionAge)

	var errs [5]error

	f := floor{db: db}
	f.insertInstance, errs[0] = db.PreparexContext(ctx, `INSERT INTO floor_instances (id, tenant, request) VALUES ($1, $2, $3)`)
	f.insertOperation, errs[1] = db.PreparexContext(ctx,
		`INSERT INTO floor_operations (id, instance_id, state, description, payload) VALUES ($1, $2, $3, $4, $5)`)
	f.selectOperation, errs[2] = db.PreparexContext(ctx, `SELECT state, description FROM floor_operations WHERE id = $1`)

	users, failed := auth.ParseUsers(secret.String(harness.User + ":" + harness.Password + ":osb"))
	errs[3] = failed

	f.selectPage, errs[4] = db.PreparexContext(ctx, `SELECT entry FROM floor_list WHERE number < $1 ORDER BY number DESC LIMIT $2`)

	if err := errors.Join(errs[:]...); err != nil {
		return err
	}

	log, err := logging.New("floor", logging.DefaultConfig(), os.Stderr)
	if err != nil {
		return err
	}

	catalogBytes, err := strconv.Atoi(os.Getenv(floorCatalogBytes))
	if err != nil {
		return err
	}

	catalog := httpserver.OK(bytes.Repeat([]byte("x"), catalogBytes))

	api := http.NewServeMux()
	api.Handle("GET /v2/catalog", httpserver.Endpoint(func(*http.Request) (httpserver.Response, error) { return catalog, nil }))
	api.Handle("PUT /v2/service_instances/{instance_id}", httpserver.Endpoint(f.provision))
	api.Handle("GET /v2/service_instances/{instance_id}/last_operation", httpserver.Endpoint(f.lastOperation))
	api.Handle("GET "+floorList, httpserver.Endpoint(f.list))

	all := http.NewServeMux()
	all.HandleFunc("GET "+floorReady, func(http.ResponseWriter, *http.Request) {})
	all.Handle("/v2/", httpserver.Wrap(api, httpserver.Observe(log, nil, clock.RealClock{}), auth.NewAuthorizer(users).Require(auth.RoleOSB)))

	server, err := httpserver.Listen(ctx, os.Getenv(floorAddress), all, 0)
	if err != nil {
		return err
	}

	return server.Run(ctx)
}

// provision inserts an instance and an operation in one transaction.
func (f floor) provision(request *http.Request) (httpserver.Response, error) {
	ctx, operation := request.Context(), uuid.NewString()

	body, err := io.ReadAll(request.Body)
	if err != nil {
		return httpserver.Response{}, fmt.Errorf("reading the request: %w", err)
	}

	var details domain.ProvisionDetails
	if err := json.Unmarshal(body, &details); err != nil {
		return httpserver.Response{}, fmt.Errorf("decoding the request: %w", err)
	}

	tx, err := f.db.BeginTxx(ctx, nil)
	if err != nil {
		return httpserver.Response{}, fmt.Errorf("beginning a transaction: %w", err)
	}
	defer tx.Rollback() // This fails after the commit.

	instance := request.PathValue("instance_id")

	if _, err := tx.StmtxContext(ctx, f.insertInstance).ExecContext(ctx, instance, details.OrganizationGUID, string(body)); err != nil {
		return httpserver.Response{}, fmt.Errorf("inserting an instance: %w", err)
	}

	if _, err := tx.StmtxContext(ctx, f.insertOperation).ExecContext(ctx, operation, instance, "pending", "", string(body)); err != nil {
		return httpserver.Response{}, fmt.Errorf("inserting an operation: %w", err)
	}

	response := httpserver.Response{Status: http.StatusAccepted, Body: apiresponses.ProvisioningResponse{OperationData: operation}}

	return response, tx.Commit()
}

// lastOperation reads the row of one operation.
func (f floor) lastOperation(request *http.Request) (httpserver.Response, error) {
	var operation struct {
		State       string `json:"state"`
		Description string `json:"description"`
	}

	if err := f.selectOperation.GetContext(request.Context(), &operation, request.URL.Query().Get("operation")); err != nil {
		return httpserver.Response{}, fmt.Errorf("reading an operation: %w", err)
	}

	return httpserver.OK(operation), nil
}

// list reads a page of entries, newest first, and one more entry to find out whether there is a next page.
func (f floor) list(request *http.Request) (httpserver.Response, error) {
	before, err := strconv.ParseInt(request.URL.Query().Get("before"), 10, 64)
	if err != nil {
		return httpserver.Response{}, fmt.Errorf("reading the parameter before: %w", err)
	}

	var entries []string
	if err := f.selectPage.SelectContext(request.Context(), &entries, before, pageSize+1); err != nil {
		return httpserver.Response{}, fmt.Errorf("reading a page: %w", err)
	}

	data := make([]json.RawMessage, 0, len(entries))
	for _, entry := range entries {
		data = append(data, json.RawMessage(entry))
	}

	return httpserver.OK(data), nil
}
