package httpserver

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/program"
)

// checkTimeout limits a readiness check, which may write to the database.
const checkTimeout = 2 * time.Second

// Health serves three paths: /healthz succeeds while the process runs, /readyz succeeds while the service can serve requests, and
// /metrics returns the metrics. The paths require no authentication, so serve them on an address that only the cluster can reach.
type Health struct {
	check    func(context.Context) error
	log      logrus.FieldLogger
	registry *prometheus.Registry
	// live is the body of /healthz: three lines with "ok", the version and the commit.
	live     string
	stopping atomic.Bool
}

// NewHealth returns the Health of a service that is ready while check returns nil. Each request for /readyz calls check.
func NewHealth(check func(context.Context) error, log logrus.FieldLogger) *Health {
	registry := prometheus.NewRegistry()
	build := program.ReadBuild()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build.Metric())

	return &Health{check: check, log: log, registry: registry, live: "ok\nversion " + build.Version + "\ncommit " + build.Commit}
}

// Registry returns the registry for the service's metrics.
func (h *Health) Registry() *prometheus.Registry { return h.registry }

// Handler returns the handler for the three paths.
func (h *Health) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, h.live) })
	mux.HandleFunc("GET /readyz", h.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{}))

	return mux
}

// ready responds with 503 if the service is stopping or its check fails. The error is logged and not sent to the client, because
// clients of the status address are not authenticated.
func (h *Health) ready(w http.ResponseWriter, r *http.Request) {
	if h.stopping.Load() {
		write(w, http.StatusServiceUnavailable, "stopping")

		return
	}

	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()

	if err := h.check(ctx); err != nil {
		h.log.WithError(err).Warn("readiness check failed")
		write(w, http.StatusServiceUnavailable, "not ready: the service's log has the cause")

		return
	}

	write(w, http.StatusOK, "ok")
}

// write sends a line of plain text.
func write(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // an error means that the client has disconnected
}

// Run makes /readyz fail when the context ends. Run must be the last lifecycle.Part of a service: parts stop in reverse order, so
// load balancers notice the change before the API server stops.
func (h *Health) Run(ctx context.Context) error {
	<-ctx.Done()
	h.stopping.Store(true)

	return nil
}
