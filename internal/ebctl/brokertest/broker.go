package brokertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// Broker answers like a broker, as its scenario says.
type Broker struct {
	scenario   Scenario
	routes     *http.ServeMux
	mutex      sync.Mutex
	operations map[string]*told
	order      []string
	runtimes   []operatorapi.Runtime
	bindings   []operatorapi.Binding
	requests   []string
}

// New returns a broker that plays the scenario.
func New(scenario Scenario) (*Broker, error) {
	broker := &Broker{
		scenario:   scenario,
		routes:     http.NewServeMux(),
		operations: map[string]*told{},
		runtimes:   slices.Clone(scenario.Runtimes),
		bindings:   slices.Clone(scenario.Bindings),
	}

	for _, script := range scenario.Operations {
		complete, err := script.complete()
		if err != nil {
			return nil, err
		}

		broker.operations[script.ID] = complete
		broker.order = append(broker.order, script.ID)
	}

	for _, entrance := range []string{"/v2", "/oauth/{platform_region}/v2"} {
		broker.routes.HandleFunc("GET "+entrance+"/catalog", osb(broker.catalog))
		broker.routes.HandleFunc("PUT "+entrance+"/service_instances/{id}", osb(broker.provision))
		broker.routes.HandleFunc("GET "+entrance+"/service_instances/{id}", osb(broker.fetch))
		broker.routes.HandleFunc("PATCH "+entrance+"/service_instances/{id}", osb(broker.update))
		broker.routes.HandleFunc("DELETE "+entrance+"/service_instances/{id}", osb(broker.deprovision))
	}

	const binding = "/v2/service_instances/{id}/service_bindings/{binding}"
	broker.routes.HandleFunc("PUT "+binding, broker.bound(broker.bind))
	broker.routes.HandleFunc("GET "+binding, broker.bound(broker.fetchBinding))
	broker.routes.HandleFunc("DELETE "+binding, broker.bound(broker.unbind))

	broker.routes.HandleFunc("GET /runtimes", broker.listRuntimes)
	broker.routes.HandleFunc("GET /runtimes/{id}/bindings", broker.listBindings)
	broker.routes.HandleFunc("POST /runtimes/{id}/adminkubeconfig", broker.adminKubeconfig)
	broker.routes.HandleFunc("PUT /expire/service_instance/{id}", broker.expire)
	broker.routes.HandleFunc("GET /audit", broker.listAudit)
	broker.routes.HandleFunc("GET /operations", broker.listOperations)
	broker.routes.HandleFunc("GET /operations/{id}", broker.operation)
	broker.routes.HandleFunc("POST /operations/{id}/{verb}", broker.intervene)

	return broker, nil
}

// Requests returns the method, path, query and body of every request so far.
func (b *Broker) Requests() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	return slices.Clone(b.requests)
}

// ServeHTTP answers one request at a time.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	if err := b.record(r); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())

		return
	}

	if b.scenario.Username != "" || b.scenario.Password != "" {
		username, password, _ := r.BasicAuth()
		if username != b.scenario.Username || password != b.scenario.Password {
			refuse(w, http.StatusUnauthorized, "Unauthorized", "credentials are missing or wrong")

			return
		}
	}

	for _, fault := range b.scenario.Faults {
		if fault.Call == r.Method+" "+r.URL.Path {
			fault.answer(w)

			return
		}
	}

	b.routes.ServeHTTP(w, r)
}

func (b *Broker) record(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}

	r.Body = io.NopCloser(bytes.NewReader(body))
	b.requests = append(b.requests, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))

	return nil
}

// answer plays the fault.
func (f Fault) answer(w http.ResponseWriter) {
	if f.Cut {
		panic(http.ErrAbortHandler)
	}

	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}

	w.WriteHeader(f.Status)
	io.WriteString(w, f.Body) //nolint:errcheck // the caller notices
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // what tests send can be encoded
}

func refuse(w http.ResponseWriter, status int, code, description string) {
	answer(w, status, operatorapi.Error{Code: code, Description: description})
}
