package console

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
)

// readQuery returns the query of a list, without empty parameters, which forms send. The parameters have the names of the endpoint of the
// operator API. The values are those of the query, also if it is invalid.
func (c *console) readQuery(r *http.Request, like string) (operatorserver.Query, url.Values, error) {
	values := url.Values{}

	for name, given := range r.URL.Query() { // ReadQuery rejects what cannot be parsed
		if len(given) > 0 && given[0] != "" {
			values[name] = given
		}
	}

	query, err := operatorserver.ReadQuery(values.Encode(), c.API.Route(like).Query...)

	return query, values, err
}

// pager returns the links to the other pages of a list. The addresses keep the filters.
func pager(path string, values url.Values, page operatorapi.Page) views.Pager {
	links := views.Pager{Count: page.Count, Total: -1}

	with := func(name, value string) string {
		changed := url.Values{}

		for each, given := range values {
			if each != "cursor" && each != "page" {
				changed[each] = given
			}
		}

		if name != "" {
			changed.Set(name, value)
		}

		return path + "?" + changed.Encode()
	}

	if values.Has("cursor") || values.Has("page") {
		links.First = with("", "")
	}

	if page.Cursor != "" {
		links.Next = with("cursor", page.Cursor)
	}

	if page.TotalCount != nil {
		links.Total = *page.TotalCount
	} else {
		links.CountAll = with("total", "true")
	}

	return links
}

// invalid reports whether an error is about the query, so that the page can show it beside the form.
func invalid(err error) bool { return httpserver.RefusalOf(err).Status == http.StatusBadRequest }

// statusOf returns the status of a page with a problem in its query.
func statusOf(problem string) int {
	if problem != "" {
		return http.StatusBadRequest
	}

	return http.StatusOK
}

// numbered is pager for a list with numbered pages.
func numbered(path string, values url.Values, asked operatorserver.Page, page operatorapi.Page) views.Pager {
	links := pager(path, values, page)
	links.CountAll = ""

	if page.TotalCount != nil && asked.Offset+page.Count < *page.TotalCount {
		next := url.Values{"page": {strconv.Itoa(asked.Offset/asked.Size + 2)}}

		for name, given := range values {
			if name != "page" {
				next[name] = given
			}
		}

		links.Next = path + "?" + next.Encode()
	}

	return links
}
