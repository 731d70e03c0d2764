package brokertest

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// intervene answers a request to do something about an operation, as the scenario allows it.
func (b *Broker) intervene(w http.ResponseWriter, r *http.Request) {
	id, verb := r.PathValue("id"), r.PathValue("verb")

	script, found := b.operations[id]
	if !found {
		refuse(w, http.StatusNotFound, "NotFound", "there is no operation "+id)

		return
	}

	var wanted operatorapi.Intervention

	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&wanted); err != nil || wanted.Reason == "" || wanted.Step != "" && verb == "cancel" {
		refuse(w, http.StatusBadRequest, "BadRequest", "reason is missing, or the body cannot be read")

		return
	}

	allowed := slices.IndexFunc(b.scenario.Interventions, func(each Intervention) bool {
		return each.Operation == id && each.Verb == verb
	})
	if allowed < 0 {
		refuse(w, http.StatusConflict, "Conflict", "there is nothing to "+verb)

		return
	}

	if successor := b.scenario.Interventions[allowed].Successor; successor != "" {
		script = b.operations[successor]
	}

	told := script.present().operation
	told.Timeline, told.Why, told.Attempt = nil, "", 0

	answer(w, http.StatusAccepted, told)
}
