package ebctl_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// listEvents returns the events of the scenario, whose positions begin with 1. A stream ends after one event. If there is no
// further event, the response to a stream request is 410.
func (b *fakeBroker) listEvents(w http.ResponseWriter, r *http.Request) {
	streams := r.Header.Get("Accept") == "text/event-stream"

	given := r.URL.Query().Get("after")
	if streams {
		given = r.Header.Get("Last-Event-ID")
	}

	after, _ := strconv.Atoi(given) // 0 if absent

	if after > len(b.scenario.Events) {
		refuse(w, http.StatusGone, "Gone", "the position does not exist")

		return
	}

	var types []string
	if text := r.URL.Query().Get("types"); text != "" {
		types = strings.Split(text, ",")
	}

	found := []operatorapi.CloudEvent{}

	for number, event := range b.scenario.Events {
		event.Sequence = fmt.Sprintf("%020d", number+1)

		if number >= after && (types == nil || slices.Contains(types, strings.TrimPrefix(event.Type, "io.github.environment-broker."))) {
			found = append(found, event)
		}
	}

	if !streams {
		size, _ := strconv.Atoi(r.URL.Query().Get("page_size"))
		more := len(found) > size
		found = found[:min(size, len(found))]
		answer(w, http.StatusOK, operatorapi.CloudEventList{
			Data: found, Count: len(found), After: int64(after + len(found)), Last: int64(len(b.scenario.Events)), More: more,
		})

		return
	}

	if len(found) == 0 {
		refuse(w, http.StatusGone, "Gone", "Events have been removed.")

		return
	}

	encoded, err := json.Marshal(found[0])
	if err != nil {
		panic(err)
	}

	position, _ := strconv.Atoi(found[0].Sequence)

	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "retry: 1\n: heartbeat\nid: %d\n\nid: %d\nevent: x\ndata: %s\n\nid: 99\nevent: incomplete\n", after, position, encoded)
}
