// Package fakeavs simulates the API of the availability service (AvS) and its token endpoint, for tests and the sandbox.
package fakeavs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// Credentials that the simulated service accepts.
const (
	ClientID = "avs-client"
	User     = "avs-user"
	Password = "avs-password"
)

// Paths that the simulated service serves.
const (
	API   = "/api/v2/evaluationmetadata"
	Token = "/oauth2/token" //nolint:gosec // no credential
)

// Config returns a client configuration for the simulated service at the given address. Its clients set no tags.
func Config(address string) avs.Config {
	config := avs.DefaultConfig()
	config.API, config.TokenURL = address+API, address+Token
	config.ClientID, config.Username, config.Password = ClientID, User, Password
	config.GroupID, config.ParentID, config.Internal.AccessID, config.External.AccessID = 1, 2, 3, 4
	config.Tags = avs.TagClasses{ShootName: 11, SeedName: 12, Region: 13}

	return config
}

type evaluation struct {
	avs.Definition

	ID     int64         `json:"id"`
	Status avs.Lifecycle `json:"status"`
	// Threshold is a number in responses, but a string in requests.
	Threshold int64 `json:"threshold"`
	// child is true until the evaluation is removed from its parent.
	child bool
}

// AvS is a simulated availability service. It is safe for concurrent use.
type AvS struct {
	*simulator.Base

	// evaluations is keyed by evaluation ID. It does not contain parents, because the simulator accepts any parent ID. The lock in
	// Base guards evaluations and last.
	evaluations map[int64]*evaluation
	last        int64
}

// New returns an AvS without evaluations.
func New() *AvS {
	a := &AvS{Base: simulator.NewBase("avs"), evaluations: map[int64]*evaluation{}, last: 100}

	a.Mux.Handle("POST "+Token, a.Tokens(func(user, _ string, r *http.Request) bool {
		id, err := url.QueryUnescape(user)

		return err == nil && id == ClientID && r.Form.Get("grant_type") == "password" &&
			r.Form.Get("username") == User && r.Form.Get("password") == Password
	}))
	a.Mux.Handle("POST "+API, a.Protected("createEvaluation", a.create))
	a.Mux.Handle("GET "+API+"/{id}", a.Protected("getEvaluation", a.existing(func(w http.ResponseWriter, _ *http.Request, found *evaluation) {
		simulator.WriteJSON(w, http.StatusOK, found)
	})))
	a.Mux.Handle("DELETE "+API+"/{id}", a.Protected("deleteEvaluation", a.existing(a.remove)))
	a.Mux.Handle("POST "+API+"/{id}/tag", a.Protected("addTag", a.existing(tag)))
	a.Mux.Handle("PUT "+API+"/{id}/lifecycle", a.Protected("setLifecycle", a.existing(setLifecycle)))
	a.Mux.Handle("DELETE "+API+"/{parent}/child/{id}", a.Protected("removeFromParent", a.unlink))

	return a
}

// Evaluations returns copies of the definitions, including their tags, keyed by evaluation ID.
func (a *AvS) Evaluations() map[string]avs.Definition {
	found := map[string]avs.Definition{}

	a.Locked(func() {
		for id, each := range a.evaluations {
			definition := each.Definition
			definition.Tags = slices.Clone(definition.Tags)
			found[strconv.FormatInt(id, 10)] = definition
		}
	})

	return found
}

// Lifecycles returns the states of the evaluations, keyed by evaluation ID.
func (a *AvS) Lifecycles() map[string]avs.Lifecycle {
	found := map[string]avs.Lifecycle{}

	a.Locked(func() {
		for id, each := range a.evaluations {
			found[strconv.FormatInt(id, 10)] = each.Status
		}
	})

	return found
}

// Holds implements simulator.System.
func (a *AvS) Holds() []string {
	var lines []string

	a.Locked(func() {
		for _, id := range slices.Sorted(maps.Keys(a.evaluations)) {
			found := a.evaluations[id]
			lines = append(lines, fmt.Sprintf("evaluation %d %s: %s, tags %v", id, found.Status, found.Name, found.Tags))
		}
	})

	return lines
}

func problem(w http.ResponseWriter, status int, text string) {
	simulator.WriteJSON(w, status, map[string]any{"status": status, "message": text})
}

func (a *AvS) create(w http.ResponseWriter, r *http.Request) {
	created := &evaluation{Status: avs.Active, child: true}

	err := json.NewDecoder(r.Body).Decode(&created.Definition)
	if err == nil {
		created.Threshold, err = strconv.ParseInt(created.Definition.Threshold, 10, 64)
	}

	if err != nil || created.Name == "" || created.DefinitionType == "" || created.ParentID == 0 {
		problem(w, http.StatusBadRequest, "the definition is invalid")

		return
	}

	a.last++
	created.ID = a.last
	a.evaluations[created.ID] = created
	simulator.WriteJSON(w, http.StatusOK, created)
}

// existing returns a handler that passes the evaluation named in the path to execute.
func (a *AvS) existing(execute func(w http.ResponseWriter, r *http.Request, found *evaluation)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found := a.evaluations[number(r, "id")]
		if found == nil {
			problem(w, http.StatusNotFound, "there is no such evaluation")

			return
		}

		execute(w, r, found)
	}
}

func number(r *http.Request, name string) int64 {
	id, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil {
		return 0
	}

	return id
}

// remove deletes an evaluation. It rejects the request if the evaluation belongs to a parent.
func (a *AvS) remove(w http.ResponseWriter, _ *http.Request, found *evaluation) {
	if found.child {
		problem(w, http.StatusBadRequest, "the evaluation belongs to a compound evaluation")

		return
	}

	delete(a.evaluations, found.ID)
	w.WriteHeader(http.StatusOK)
}

func (a *AvS) unlink(w http.ResponseWriter, r *http.Request) {
	found := a.evaluations[number(r, "id")]
	if parent := number(r, "parent"); found == nil || !found.child || found.ParentID != parent {
		problem(w, http.StatusBadRequest, fmt.Sprintf("evaluation %d does not contain subevaluation %s", parent, r.PathValue("id")))

		return
	}

	found.child = false
	w.WriteHeader(http.StatusOK)
}

func tag(w http.ResponseWriter, r *http.Request, found *evaluation) {
	var added avs.Tag
	if err := json.NewDecoder(r.Body).Decode(&added); err != nil || added.Content == "" {
		problem(w, http.StatusBadRequest, "content and tag_class_id are required")

		return
	}

	added.ClassName = cmp.Or(added.ClassName, fmt.Sprintf("class-%d", added.ClassID))
	found.Tags = append(found.Tags, added)
	simulator.WriteJSON(w, http.StatusOK, found)
}

func setLifecycle(w http.ResponseWriter, r *http.Request, found *evaluation) {
	var wanted avs.Lifecycle
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil || !wanted.Known() {
		problem(w, http.StatusBadRequest, "the body must be a known state")

		return
	}

	found.Status = wanted
	simulator.WriteJSON(w, http.StatusOK, found)
}
