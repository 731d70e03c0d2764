package httpserver

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
)

var errPanic = errors.New("the handler panicked")

// Observe returns a middleware that logs and counts each request, and responds with 500 if a handler panics. The log line contains
// neither the body nor the query, because both may contain secrets. Handlers and inner middlewares describe the request with
// Note and its variants. If metrics is nil, requests are not counted.
func Observe(log logrus.FieldLogger, metrics *Metrics, clock clock.PassiveClock) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := clock.Now()
			line := &notes{fields: logrus.Fields{
				logging.Method: r.Method, logging.Path: r.URL.EscapedPath(), logging.Address: r.RemoteAddr,
			}}

			if identity := r.Header.Get(RequestIdentity); identity != "" {
				line.fields[logging.RequestID] = identity
			}

			recorder := &ResponseRecorder{ResponseWriter: w}

			defer func() {
				if value := recover(); value != nil {
					log.WithField(logging.Stack, string(debug.Stack())).Errorf("handler panicked: %v", value)

					line.cause = errPanic

					if recorder.Status == 0 {
						RefusalOf(errPanic).response().Write(recorder)
					}
				}

				took := clock.Since(began)
				line.fields[logging.Status] = recorder.Status
				line.fields[logging.Duration] = took.String()
				line.write(log, recorder.Status)
				metrics.count(r.Method, line, recorder.Status, took)
			}()

			next.ServeHTTP(recorder, r.WithContext(context.WithValue(r.Context(), notesKey{}, line)))
		})
	}
}

// notes collects the values that the handlers of a request pass to Note and its variants. It needs no lock, because only the
// goroutine that serves the request may call them.
type notes struct {
	// fields are the fields of the log line.
	fields logrus.Fields
	// cause is the cause of a refusal or panic, or nil.
	cause error
	// route and plan are labels of the metrics. result is the value of the status label; if it is 0, the label is the status of
	// the response.
	route, plan string
	result      int
	// poll marks a request that its client repeats until something has changed.
	poll bool
}

type notesKey struct{}

// Note adds a field to the log line of the request. Call Note and its variants only in the goroutine that serves the request. For
// requests outside the Observe middleware, they have no effect.
func Note(ctx context.Context, field string, value any) {
	if line := notesOf(ctx); line != nil {
		line.fields[field] = value
	}
}

// NoteRoute sets the route of the request in the metrics. The route must come from a fixed set, such as the route templates,
// because each value creates a separate time series. The last call wins.
func NoteRoute(ctx context.Context, route string) {
	if line := notesOf(ctx); line != nil {
		line.route = route
	}
}

// NotePlan sets the service plan of the request in the metrics. The plan must be the name of a plan in the catalog, because each
// value creates a separate time series.
func NotePlan(ctx context.Context, plan string) {
	if line := notesOf(ctx); line != nil {
		line.plan = plan
	}
}

// NoteResult sets the status of the request in the metrics. GraphQL handlers must call it for errors, because the responses have
// status 200 and would otherwise count as successful.
func NoteResult(ctx context.Context, status int) {
	if line := notesOf(ctx); line != nil {
		line.result = status
	}
}

// NotePoll marks a request that clients repeat every few seconds. Polls would dominate the log, so successful polls are logged at
// level debug.
func NotePoll(ctx context.Context) {
	if line := notesOf(ctx); line != nil {
		line.poll = true
	}
}

// NoteCause adds the cause of a refusal to the log line of the request, for handlers that do not respond through an Endpoint.
func NoteCause(ctx context.Context, refusal *Refusal) {
	if line := notesOf(ctx); line != nil {
		line.cause = refusal.Cause
	}
}

// notesOf returns the notes of the request, or nil if the request is outside the Observe middleware.
func notesOf(ctx context.Context) *notes {
	line, _ := ctx.Value(notesKey{}).(*notes)

	return line
}

// write logs the line. The level is error for a status of 500 or more, debug for a successful poll, and info otherwise. A poll
// with status 410 counts as successful: it is the expected end of polling after the object has been removed.
func (n *notes) write(log logrus.FieldLogger, status int) {
	entry := log.WithFields(n.fields)
	if n.cause != nil {
		entry = entry.WithError(n.cause)
	}

	switch {
	case status >= http.StatusInternalServerError:
		entry.Error("request failed")
	case n.poll && (status < http.StatusBadRequest || status == http.StatusGone):
		entry.Debug("request completed")
	default:
		entry.Info("request completed")
	}
}

// Metrics counts the requests of a service and measures their duration. It is safe for concurrent use. A nil *Metrics is valid
// and does not count anything.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics returns metrics that are registered in the registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	metrics := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "environment_broker_http_requests_total",
			Help: "Requests by method, route, plan and status. The route is empty if the request was rejected before routing or if the path " +
				"is unknown. The plan is empty unless the request names a plan of the catalog. GraphQL responses with an error have the " +
				"status of the error.",
		}, []string{"method", "route", "plan", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "environment_broker_http_request_duration_seconds", Help: "Duration of requests until the end of the response.",
		}, []string{"method", "route"}),
	}
	registry.MustRegister(metrics.requests, metrics.duration)

	return metrics
}

// count counts a request after its response has been sent.
func (m *Metrics) count(method string, line *notes, status int, took time.Duration) {
	if m == nil {
		return
	}

	// Clients can send any method, but a label must have few values.
	if !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodPost, http.MethodDelete}, method) {
		method = "other"
	}

	m.requests.WithLabelValues(method, line.route, line.plan, strconv.Itoa(cmp.Or(line.result, status))).Inc()
	m.duration.WithLabelValues(method, line.route).Observe(took.Seconds())
}
