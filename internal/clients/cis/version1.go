package cis

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

const (
	// eventType1 is the type of events about deleted subaccounts in version 1.0.
	eventType1 = "MASTER_SUBACCOUNT_DELETION"
	// pageSize1 is the number of events in a page, and maxPages1 the maximum number of pages in a read.
	pageSize1 = 1000
	maxPages1 = 1500
)

// page1 is a page of events of version 1.0 in its wire format.
type page1 struct {
	TotalPages int `json:"totalPages"`
	Events     []struct {
		Type string `json:"type"`
		Data struct {
			Subaccount string `json:"subaccountGuid"`
		} `json:"eventData"`
	} `json:"events"`
}

// deletedInVersion1 returns all deletions of subaccounts. Their events have no times, so each read covers the whole history. If
// an event moves to another page during the read, it may be missing from the result, but the next read finds it.
func (c *Client) deletedInVersion1(ctx context.Context) ([]Event, error) {
	var found []Event

	for number := 1; number <= maxPages1; number++ {
		var page page1

		query := url.Values{"ts": {"1"}, "type": {eventType1}, "resultsPerPage": {strconv.Itoa(pageSize1)}, "page": {strconv.Itoa(number)}}
		if err := c.rest.Do(ctx, restclient.Request{
			Method: http.MethodGet, URL: strings.TrimSuffix(c.config.URL, "/") + "/public/rest/v2/events?" + query.Encode(),
			Action: "list the deleted subaccounts", Into: &page,
		}); err != nil {
			return nil, err
		}

		for _, event := range page.Events {
			if event.Type == eventType1 && event.Data.Subaccount != "" {
				found = append(found, Event{Subaccount: event.Data.Subaccount})
			}
		}

		if len(page.Events) == 0 || number >= page.TotalPages {
			return found, nil
		}
	}

	return nil, failure.New(failure.Permanent, "CIS returned more than %d pages of events", maxPages1)
}
