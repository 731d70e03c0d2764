package console

import (
	"maps"
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

	if values.Has("cursor") || values.Has("page") {
		links.First = otherPage(path, values, "", "")
	}

	if page.Cursor != "" {
		links.Next = otherPage(path, values, "cursor", page.Cursor)
	}

	if page.TotalCount != nil {
		links.Total = *page.TotalCount
	} else {
		links.CountAll = otherPage(path, values, "total", "true")
	}

	return links
}

// otherPage returns the address of a list with its filters and another parameter. Without a name, it is that of the first page.
func otherPage(path string, values url.Values, name, value string) string {
	changed := maps.Clone(values)
	changed.Del("cursor")
	changed.Del("page")

	if name != "" {
		changed.Set(name, value)
	}

	return path + "?" + changed.Encode()
}

// problem returns the text of an error about the query, which the page shows beside the form. It returns all other errors.
func problem(err error) (string, error) {
	if err != nil && httpserver.RefusalOf(err).Status == http.StatusBadRequest {
		return textOf(err), nil
	}

	return "", err
}

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
		links.Next = otherPage(path, values, "page", strconv.Itoa(asked.Offset/asked.Size+2))
	}

	return links
}
