package ebctl_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func (b *fakeBroker) routeOrchestrations() {
	for _, kind := range []string{"kyma", "cluster"} {
		b.routes.HandleFunc("POST /upgrade/"+kind, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusAccepted, operatorapi.AcceptedOrchestration{OrchestrationID: "new-" + kind})
		})
		b.routes.HandleFunc("POST /upgrade/"+kind+"/plan", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusCreated, operatorapi.AcceptedOrchestration{OrchestrationID: "plan"})
		})
	}

	b.routes.HandleFunc("POST /orchestrations/{id}/apply", func(w http.ResponseWriter, r *http.Request) {
		if found := b.findOrchestration(w, r); found != nil && found.State != "planned" {
			refuse(w, http.StatusConflict, "Conflict", "The orchestration is not a plan.")
		} else if found != nil {
			answer(w, http.StatusAccepted, b.scenario.Applied)
		}
	})

	b.routes.HandleFunc("GET /orchestrations", func(w http.ResponseWriter, r *http.Request) {
		data, page := numbered(b.scenario.Orchestrations, r.URL.Query(), b.scenario.PageSize, func(each operatorapi.Orchestration) string { return each.State })
		answer(w, http.StatusOK, operatorapi.OrchestrationList{Data: data, Page: page})
	})
	b.routes.HandleFunc("GET /orchestrations/{id}/operations", func(w http.ResponseWriter, r *http.Request) {
		targets := b.scenario.Targets
		if r.URL.Query().Get("state") == "" {
			targets = slices.DeleteFunc(slices.Clone(targets), func(each operatorapi.OrchestrationOperation) bool { return each.State == "left out" })
		}

		data, page := numbered(targets, r.URL.Query(), b.scenario.PageSize, func(each operatorapi.OrchestrationOperation) string { return each.State })
		answer(w, http.StatusOK, operatorapi.OrchestrationOperationList{Data: data, Page: page})
	})
	b.routes.HandleFunc("GET /orchestrations/{id}", func(w http.ResponseWriter, r *http.Request) {
		found := b.findOrchestration(w, r)
		if found == nil {
			return
		}

		answer(w, http.StatusOK, found)

		// The next frame is the response to the next request.
		if frames := b.scenario.OrchestrationFrames[found.OrchestrationID]; len(frames) > 0 {
			*found, b.scenario.OrchestrationFrames[found.OrchestrationID] = frames[0], frames[1:]
		}
	})
	for change, state := range map[string]string{"cancel": "canceling", "pause": "paused", "resume": "in progress"} {
		b.routes.HandleFunc("PUT /orchestrations/{id}/"+change, func(w http.ResponseWriter, r *http.Request) {
			if found := b.findOrchestration(w, r); found != nil {
				found.State = state
				answer(w, http.StatusOK, operatorapi.AcceptedOrchestration{OrchestrationID: found.OrchestrationID})
			}
		})
	}

	b.routes.HandleFunc("POST /orchestrations/{id}/undo", func(w http.ResponseWriter, r *http.Request) {
		if b.findOrchestration(w, r) != nil {
			answer(w, http.StatusAccepted, operatorapi.AcceptedOrchestration{OrchestrationID: "undo"})
		}
	})
	b.routes.HandleFunc("POST /orchestrations/{id}/retry", func(w http.ResponseWriter, r *http.Request) {
		if b.findOrchestration(w, r) != nil {
			answer(w, http.StatusAccepted, b.scenario.Retried)
		}
	})
}

// findOrchestration returns the orchestration that the path names, or responds with 404.
func (b *fakeBroker) findOrchestration(w http.ResponseWriter, r *http.Request) *operatorapi.Orchestration {
	for i := range b.scenario.Orchestrations {
		if each := &b.scenario.Orchestrations[i]; each.OrchestrationID == r.PathValue("id") {
			return each
		}
	}

	refuse(w, http.StatusNotFound, "NotFound", "The orchestration does not exist.")

	return nil
}

// numbered returns the page that the query selects by its number, from the entries in one of the query's states.
func numbered[T any](entries []T, query url.Values, size int, state func(T) string) ([]T, operatorapi.Page) {
	chosen := slices.DeleteFunc(slices.Clone(entries), func(each T) bool {
		return query.Get("state") != "" && !slices.Contains(strings.Split(query.Get("state"), ","), state(each))
	})
	total := len(chosen)

	number, err := strconv.Atoi(query.Get("page"))
	if err != nil {
		number = 1
	}

	if size == 0 {
		size = max(total, 1)
	}

	begin := min((number-1)*size, total)
	data := chosen[begin:min(begin+size, total)]

	return append([]T{}, data...), operatorapi.Page{Count: len(data), TotalCount: &total}
}
