// Package fakecleanup simulates the hook that empties dirty accounts of the account pool, for tests and the sandbox. It deletes
// nothing: it reports an account as empty when it is called for the account a second time.
package fakecleanup

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/environment-broker/environment-broker/internal/clients/cleanuphook"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// Credentials that the simulated hook accepts.
const (
	User     = "cleanup-user"
	Password = "cleanup-password"
)

// Path is the path at which the simulator serves the hook.
const Path = "/cleanup"

// Config returns a client configuration for the simulated hook at the given address.
func Config(address string) cleanuphook.Config {
	config := cleanuphook.DefaultConfig()
	config.URL, config.User, config.Password = address+Path, User, Password

	return config
}

// Hook is a simulated cleanup hook. It is safe for concurrent use.
type Hook struct {
	*simulator.Base

	// questions contains the last question about each account. A question is removed when its account has been reported as empty.
	// The lock in Base guards the map.
	questions map[string]cleanuphook.Question
}

// New returns a hook that has not been called yet.
func New() *Hook {
	h := &Hook{Base: simulator.NewBase("cleanup"), questions: map[string]cleanuphook.Question{}}
	h.Mux.Handle("POST "+Path, h.Handle("clean", h.clean))

	return h
}

// Questions returns the questions about accounts that are being emptied, keyed by account name.
func (h *Hook) Questions() map[string]cleanuphook.Question {
	var found map[string]cleanuphook.Question

	h.Locked(func() { found = maps.Clone(h.questions) })

	return found
}

// Holds implements simulator.System.
func (h *Hook) Holds() []string {
	var lines []string

	h.Locked(func() {
		for _, name := range slices.Sorted(maps.Keys(h.questions)) {
			lines = append(lines, fmt.Sprintf("account %s (%s) of tenant %s is being emptied", name, h.questions[name].Type, h.questions[name].Tenant))
		}
	})

	return lines
}

func (h *Hook) clean(w http.ResponseWriter, r *http.Request) {
	if user, password, _ := r.BasicAuth(); user != User || password != Password {
		simulator.WriteJSON(w, http.StatusUnauthorized, map[string]string{"message": "wrong credentials"})

		return
	}

	var question cleanuphook.Question

	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&question); err != nil || question.Account == "" || question.Namespace == "" || question.Provider == "" || question.Tenant == "" {
		simulator.WriteJSON(w, http.StatusBadRequest, map[string]string{"message": "the request is invalid"})

		return
	}

	if _, known := h.questions[question.Account]; known {
		delete(h.questions, question.Account)
		simulator.WriteJSON(w, http.StatusOK, cleanuphook.Answer{State: accountpool.CleanupClean, Message: "the account is empty"})

		return
	}

	h.questions[question.Account] = question
	simulator.WriteJSON(w, http.StatusOK, cleanuphook.Answer{State: accountpool.CleanupPending, Message: "the account is being emptied"})
}
