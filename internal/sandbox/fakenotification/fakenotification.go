// Package fakenotification simulates the service that informs customers about the maintenance of their runtimes, for tests and
// the sandbox.
package fakenotification

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// Credentials that the simulated service accepts.
const (
	User     = "notification-user"
	Password = "notification-password"
)

// Config returns a client configuration for the simulated service at the given address.
func Config(address string) notification.Config {
	config := notification.DefaultConfig()
	config.URL, config.User, config.Password = address, User, Password

	return config
}

type event struct {
	kind notification.Type
	// tenants is keyed by instance ID.
	tenants map[string]notification.Tenant
	// received contains the calls for the event, oldest first: create, the state (1, 2 or 3) of each tenant in an update, or cancel.
	received []string
}

// Service is a simulated notification service. It is safe for concurrent use.
type Service struct {
	*simulator.Base

	// events is keyed by event ID. The lock in Base guards it.
	events map[string]*event
}

// New returns a service without events.
func New() *Service {
	s := &Service{Base: simulator.NewBase("notification"), events: map[string]*event{}}

	s.Mux.Handle("POST "+notification.PathCreate, s.Handle("createEvent", s.decoded(s.create)))
	s.Mux.Handle("PATCH "+notification.PathUpdate, s.Handle("updateEvent", s.decoded(s.existing(update))))
	s.Mux.Handle("PATCH "+notification.PathCancel, s.Handle("cancelEvent", s.decoded(s.existing(cancel))))

	return s
}

// Received returns the calls for each event, oldest first: create, the state of each tenant in an update, and cancel. It includes
// a repeated creation, which gets 409, and omits calls for unknown events and malformed calls.
func (s *Service) Received() map[string][]string {
	found := map[string][]string{}

	s.Locked(func() {
		for id, each := range s.events {
			found[id] = slices.Clone(each.received)
		}
	})

	return found
}

// Tenants returns the type of an event, and its tenants, keyed by instance ID. Both are empty if there is no such event.
func (s *Service) Tenants(id string) (kind notification.Type, tenants map[string]notification.Tenant) {
	s.Locked(func() {
		if found := s.events[id]; found != nil {
			kind, tenants = found.kind, maps.Clone(found.tenants)
		}
	})

	return kind, tenants
}

// Holds implements simulator.System.
func (s *Service) Holds() []string {
	var lines []string

	subjects := map[notification.Type]string{notification.Kubernetes: "Kubernetes", notification.Kyma: "Kyma"}

	s.Locked(func() {
		for _, id := range slices.Sorted(maps.Keys(s.events)) {
			found := s.events[id]
			lines = append(lines, fmt.Sprintf("event %s, %s, instances %s, received: %s",
				id, subjects[found.kind], strings.Join(slices.Sorted(maps.Keys(found.tenants)), " "), strings.Join(found.received, ", ")))
		}
	})

	return lines
}

// decoded returns a handler that passes the event in the request body to execute. It rejects malformed events and wrong
// credentials, but accepts requests without credentials.
func (s *Service) decoded(execute func(w http.ResponseWriter, sent notification.Event)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if user, password, given := r.BasicAuth(); given && (user != User || password != Password) {
			reply(w, http.StatusUnauthorized, "wrong credentials")

			return
		}

		var sent notification.Event

		decoder := json.NewDecoder(r.Body)
		decoder.DisallowUnknownFields()

		if err := decoder.Decode(&sent); err != nil || sent.ID == "" || !valid(sent.Tenants) {
			reply(w, http.StatusBadRequest, "the event is invalid")

			return
		}

		execute(w, sent)
	}
}

func valid(tenants []notification.Tenant) bool {
	for _, tenant := range tenants {
		for _, text := range []string{tenant.Start, tenant.End} {
			if _, err := time.Parse(notification.TimeLayout, text); err != nil && text != "" {
				return false
			}
		}

		if tenant.InstanceID == "" || tenant.State != "" && !slices.Contains(states(), tenant.State) {
			return false
		}
	}

	return true
}

func states() []notification.State {
	return []notification.State{notification.UnderMaintenance, notification.Finished, notification.Canceled}
}

func reply(w http.ResponseWriter, status int, text string) {
	simulator.WriteJSON(w, status, map[string]string{"message": text})
}

func (s *Service) create(w http.ResponseWriter, sent notification.Event) {
	if len(sent.Tenants) == 0 || sent.Type != notification.Kubernetes && sent.Type != notification.Kyma {
		reply(w, http.StatusBadRequest, "a new event needs a type and tenants")

		return
	}

	if found := s.events[sent.ID]; found != nil {
		found.received = append(found.received, "create")
		reply(w, http.StatusConflict, "the event exists")

		return
	}

	created := &event{kind: sent.Type, tenants: map[string]notification.Tenant{}, received: []string{"create"}}
	for _, tenant := range sent.Tenants {
		created.tenants[tenant.InstanceID] = tenant
	}

	s.events[sent.ID] = created
	w.WriteHeader(http.StatusCreated)
}

// existing returns a handler that calls execute with the stored event that has the ID of the sent event. It returns 404 if there
// is none.
func (s *Service) existing(execute func(w http.ResponseWriter, sent notification.Event, found *event)) func(http.ResponseWriter, notification.Event) {
	return func(w http.ResponseWriter, sent notification.Event) {
		found := s.events[sent.ID]
		if found == nil {
			reply(w, http.StatusNotFound, "there is no such event")

			return
		}

		execute(w, sent, found)
	}
}

// update sets the state of the given tenants. It also sets their start and end times, except times that are empty in the request.
// It stops at the first unknown tenant; the tenants listed before this one stay updated.
func update(w http.ResponseWriter, sent notification.Event, found *event) {
	if len(sent.Tenants) == 0 {
		reply(w, http.StatusBadRequest, "an update needs tenants")

		return
	}

	for _, tenant := range sent.Tenants {
		known, exists := found.tenants[tenant.InstanceID]
		if !exists {
			reply(w, http.StatusBadRequest, "the event has no such tenant")

			return
		}

		if tenant.Start != "" {
			known.Start = tenant.Start
		}

		if tenant.End != "" {
			known.End = tenant.End
		}

		known.State = tenant.State
		found.tenants[tenant.InstanceID] = known
		found.received = append(found.received, string(tenant.State))
	}

	w.WriteHeader(http.StatusOK)
}

func cancel(w http.ResponseWriter, _ notification.Event, found *event) {
	found.received = append(found.received, "cancel")
	w.WriteHeader(http.StatusOK)
}
