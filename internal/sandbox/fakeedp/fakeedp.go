// Package fakeedp simulates the administration API of the Event Data Platform and its token endpoint, for tests and the sandbox.
package fakeedp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// Namespace is the only namespace of the simulated platform, and Secret is the client secret for this namespace.
const (
	Namespace = "kyma-dev"
	Secret    = "edp-secret"
)

// EDP is a simulated Event Data Platform. It is safe for concurrent use.
type EDP struct {
	*simulator.Base

	// tenants contains the metadata of each data tenant, keyed by NAME/ENVIRONMENT. The lock in Base guards it.
	tenants map[string]map[string]string
}

// New returns an EDP without data tenants.
func New() *EDP {
	e := &EDP{Base: simulator.NewBase("edp"), tenants: map[string]map[string]string{}}

	const tenants = "/namespaces/" + Namespace + "/dataTenants"

	const tenant = tenants + "/{name}/{environment}"

	e.Mux.Handle("POST /oauth2/token", e.Tokens(func(user, password string, r *http.Request) bool {
		id, err := url.QueryUnescape(user)

		return err == nil && id == "edp-namespace;"+Namespace && password == Secret && r.Form.Get("grant_type") == "client_credentials"
	}))
	e.Mux.Handle("POST "+tenants, e.Protected("createTenant", e.createTenant))
	e.Mux.Handle("DELETE "+tenant, e.Protected("deleteTenant", e.deleteTenant))
	e.Mux.Handle("GET "+tenant+"/metadata", e.Protected("getMetadata", e.getMetadata))
	e.Mux.Handle("POST "+tenant+"/metadata", e.Protected("createMetadata", e.createMetadata))
	e.Mux.Handle("DELETE "+tenant+"/metadata/{key}", e.Protected("deleteMetadata", e.deleteMetadata))

	return e
}

// Tenants returns a copy of the metadata of all data tenants, keyed by NAME/ENVIRONMENT.
func (e *EDP) Tenants() map[string]map[string]string {
	found := map[string]map[string]string{}

	e.Locked(func() {
		for name, metadata := range e.tenants {
			found[name] = maps.Clone(metadata)
		}
	})

	return found
}

// Holds implements simulator.System.
func (e *EDP) Holds() []string {
	tenants := e.Tenants()
	lines := make([]string, 0, len(tenants))

	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		lines = append(lines, fmt.Sprintf("data tenant %s %v", name, tenants[name]))
	}

	return lines
}

func key(r *http.Request) string { return r.PathValue("name") + "/" + r.PathValue("environment") }

func problem(w http.ResponseWriter, status int, text string) {
	simulator.WriteJSON(w, status, map[string]any{"status": status, "message": text})
}

func (e *EDP) createTenant(w http.ResponseWriter, r *http.Request) {
	var tenant struct {
		Name        string `json:"name"`
		Environment string `json:"environment"`
		Secret      string `json:"secret"`
	}

	if err := json.NewDecoder(r.Body).Decode(&tenant); err != nil || tenant.Name == "" || tenant.Environment == "" || tenant.Secret == "" {
		problem(w, http.StatusBadRequest, "name, environment and secret are required")

		return
	}

	name := tenant.Name + "/" + tenant.Environment
	if e.tenants[name] != nil {
		problem(w, http.StatusConflict, "the data tenant exists")

		return
	}

	e.tenants[name] = map[string]string{}
	simulator.WriteJSON(w, http.StatusCreated, map[string]string{"name": tenant.Name, "environment": tenant.Environment})
}

// deleteTenant deletes a data tenant. It rejects the request if the data tenant still has metadata.
func (e *EDP) deleteTenant(w http.ResponseWriter, r *http.Request) {
	metadata, exists := e.tenants[key(r)]

	switch {
	case !exists:
		problem(w, http.StatusNotFound, "there is no such data tenant")
	case len(metadata) > 0:
		problem(w, http.StatusBadRequest, "the data tenant has metadata")
	default:
		delete(e.tenants, key(r))
		w.WriteHeader(http.StatusNoContent)
	}
}

func (e *EDP) getMetadata(w http.ResponseWriter, r *http.Request) {
	metadata, exists := e.tenants[key(r)]
	if !exists {
		problem(w, http.StatusNotFound, "there is no such data tenant")

		return
	}

	entries := []edp.Entry{}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		entries = append(entries, edp.Entry{Key: name, Value: metadata[name]})
	}

	simulator.WriteJSON(w, http.StatusOK, entries)
}

func (e *EDP) createMetadata(w http.ResponseWriter, r *http.Request) {
	var entry edp.Entry

	err := json.NewDecoder(r.Body).Decode(&entry)
	metadata, exists := e.tenants[key(r)]

	switch {
	case err != nil || entry.Key == "":
		problem(w, http.StatusBadRequest, "key and value are required")
	case !exists:
		problem(w, http.StatusNotFound, "there is no such data tenant")
	case metadata[entry.Key] != "":
		problem(w, http.StatusConflict, "the key exists")
	default:
		metadata[entry.Key] = entry.Value
		simulator.WriteJSON(w, http.StatusCreated, entry)
	}
}

func (e *EDP) deleteMetadata(w http.ResponseWriter, r *http.Request) {
	metadata := e.tenants[key(r)]
	if _, exists := metadata[r.PathValue("key")]; !exists {
		problem(w, http.StatusNotFound, "there is no such key")

		return
	}

	delete(metadata, r.PathValue("key"))
	w.WriteHeader(http.StatusNoContent)
}
