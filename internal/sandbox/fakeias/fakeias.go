// Package fakeias simulates the part of Identity Authentication's administration API that removes service providers, for tests
// and the sandbox.
package fakeias

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/environment-broker/environment-broker/internal/clients/ias"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// Credentials that the simulated API accepts.
const (
	User   = "ias-user"
	Secret = "ias-secret"
)

// IAS is a simulated Identity Authentication. It is safe for concurrent use.
type IAS struct {
	*simulator.Base

	// providers contains the service providers. added counts all service providers that were ever added; the ID of a new service
	// provider contains this number. The lock in Base guards both fields.
	providers []ias.ServiceProvider
	added     int
}

// New returns an IAS without service providers.
func New() *IAS {
	i := &IAS{Base: simulator.NewBase("ias")}
	i.Mux.Handle("GET /service/company/global", i.Handle("getCompany", authorized(func(w http.ResponseWriter, _ *http.Request) {
		simulator.WriteJSON(w, http.StatusOK, ias.Company{ServiceProviders: append([]ias.ServiceProvider{}, i.providers...)})
	})))
	i.Mux.Handle("PUT /service/sps/delete", i.Handle("deleteServiceProvider", authorized(i.remove)))

	return i
}

// Add adds a service provider for the given instance, as Kyma Environment Broker would have registered it.
func (i *IAS) Add(instanceID string) {
	i.Locked(func() {
		i.added++
		i.providers = append(i.providers, ias.ServiceProvider{ID: fmt.Sprintf("sp-%d", i.added), DisplayName: ias.DisplayName(instanceID)})
	})
}

// Holds implements simulator.System.
func (i *IAS) Holds() []string {
	var lines []string

	i.Locked(func() {
		for _, provider := range i.providers {
			lines = append(lines, "service provider "+provider.ID+": "+provider.DisplayName)
		}
	})

	return lines
}

func (i *IAS) remove(w http.ResponseWriter, r *http.Request) {
	at := slices.IndexFunc(i.providers, func(p ias.ServiceProvider) bool { return p.ID == r.URL.Query().Get("sp_id") })
	if at < 0 {
		simulator.WriteJSON(w, http.StatusNotFound, map[string]string{"error": "there is no such service provider"})

		return
	}

	i.providers = slices.Delete(i.providers, at, at+1)
	w.WriteHeader(http.StatusOK)
}

// authorized returns a handler that calls execute if the request has the right credentials, and returns 401 otherwise.
func authorized(execute http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != User || password != Secret {
			simulator.WriteJSON(w, http.StatusUnauthorized, map[string]string{"error": "wrong credentials"})

			return
		}

		execute(w, r)
	}
}
