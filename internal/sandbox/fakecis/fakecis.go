// Package fakecis simulates the event service of SAP Cloud Management and its token endpoint, for tests and the sandbox.
package fakecis

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/cis"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// ID and Secret are the client credentials that the simulated service accepts.
const (
	ID     = "broker"
	Secret = "cis-secret"
)

// event is an event in the JSON format of the CIS API.
type event struct {
	CreationTime int64  `json:"creationTime"`
	EntityID     string `json:"entityId"`
	EventType    string `json:"eventType"`
}

// CIS is a simulated event service. It is safe for concurrent use.
type CIS struct {
	*simulator.Base

	// events are in the order in which they were added. The lock in Base guards them.
	events []event
}

// New returns a CIS without events.
func New() *CIS {
	c := &CIS{Base: simulator.NewBase("cis")}

	c.Mux.Handle("POST /oauth/token", c.Tokens(func(user, password string, r *http.Request) bool {
		return user == ID && password == Secret && r.Form.Get("grant_type") == "client_credentials"
	}))
	c.Mux.Handle("GET /events/v1/events/central", c.Protected("listEvents", c.list))
	c.Mux.Handle("GET /public/rest/v2/events", c.Protected("listEvents1", c.listVersion1))

	// Sandbox users call this path to report the deletion of a subaccount. It is not part of the CIS API.
	c.Mux.HandleFunc("POST /deletions/{subaccount}", func(w http.ResponseWriter, r *http.Request) {
		c.Delete(r.PathValue("subaccount"), time.Now())
		w.WriteHeader(http.StatusNoContent)
	})

	return c
}

// Config returns a client configuration for the CIS at the given address.
func Config(address string) cis.Config {
	config := cis.DefaultConfig()
	config.URL, config.AuthURL, config.ClientID, config.ClientSecret = address, address, ID, Secret

	return config
}

// Delete adds an event that reports the deletion of a subaccount.
func (c *CIS) Delete(subaccount string, at time.Time) { c.Add("Subaccount_Deletion", subaccount, at) }

// Add adds an event of the given type about an entity, such as a subaccount.
func (c *CIS) Add(eventType, entity string, at time.Time) {
	c.Locked(func() {
		c.events = append(c.events, event{CreationTime: at.UnixMilli(), EntityID: entity, EventType: eventType})
	})
}

// Holds implements simulator.System.
func (c *CIS) Holds() []string {
	var lines []string

	c.Locked(func() {
		for _, event := range c.events {
			lines = append(lines, fmt.Sprintf("%s %s %s", time.UnixMilli(event.CreationTime).UTC().Format(time.RFC3339), event.EventType, event.EntityID))
		}
	})

	return lines
}

// listVersion1 serves a page of subaccount deletions in the format of API version 1.0.
func (c *CIS) listVersion1(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	size, err := strconv.Atoi(query.Get("resultsPerPage"))
	number, numberErr := strconv.Atoi(query.Get("page"))

	if err != nil || numberErr != nil || size < 1 || size > 1000 || number < 1 || query.Get("ts") == "" || query.Get("type") != "MASTER_SUBACCOUNT_DELETION" {
		simulator.WriteJSON(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"code": 400, "message": "invalid query"}})

		return
	}

	events := []map[string]any{}

	for _, event := range c.events {
		if event.EventType == "Subaccount_Deletion" {
			events = append(events, map[string]any{"type": query.Get("type"), "eventData": map[string]any{"subaccountGuid": event.EntityID}})
		}
	}

	from, to := min((number-1)*size, len(events)), min(number*size, len(events))

	simulator.WriteJSON(w, http.StatusOK, map[string]any{
		"totalResults": len(events), "totalPages": (len(events) + size - 1) / size, "events": events[from:to],
	})
}

// list serves a page of events, sorted by creation time. The request can select one event type.
func (c *CIS) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	size, err := strconv.Atoi(query.Get("pageSize"))
	number, numberErr := strconv.Atoi(query.Get("pageNum"))

	if err != nil || numberErr != nil || size < 1 || size > 150 || number < 0 || query.Get("sortField") != "creationTime" {
		simulator.WriteJSON(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"code": 400, "message": "invalid query"}})

		return
	}

	matching := []event{}

	for _, event := range c.events {
		if query.Get("eventType") == "" || event.EventType == query.Get("eventType") {
			matching = append(matching, event)
		}
	}

	slices.SortStableFunc(matching, func(one, other event) int { return int(one.CreationTime - other.CreationTime) })

	if query.Get("sortOrder") == "DESC" {
		slices.Reverse(matching)
	}

	from, to := min(number*size, len(matching)), min((number+1)*size, len(matching))

	simulator.WriteJSON(w, http.StatusOK, map[string]any{
		"total": len(matching), "totalPages": (len(matching) + size - 1) / size, "pageNum": number, "morePages": to < len(matching),
		"events": matching[from:to],
	})
}
