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

// readQuery returns the query of a list page. It accepts the query parameters of the operator API endpoint that like names, such
// as "GET /runtimes". It drops empty parameters, because forms send empty fields. It returns the other parameters even if the
// query is invalid, so that the page can show them.
func (c *console) readQuery(r *http.Request, like string) (operatorserver.Query, url.Values, error) {
	values := url.Values{}

	for name, given := range r.URL.Query() { // Query drops malformed parameters
		if len(given) > 0 && given[0] != "" {
			values[name] = given
		}
	}

	query, err := operatorserver.ReadQuery(values.Encode(), c.API.Route(like).Query...)

	return query, values, err
}

// pager returns the links to the other pages of a list. Their URLs keep the filters.
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

// otherPage returns the URL of another page of a list. It keeps the filters and replaces the parameters that select the page with
// the named parameter. If name is empty, it returns the URL of the first page.
func otherPage(path string, values url.Values, name, value string) string {
	changed := maps.Clone(values)
	changed.Del("cursor")
	changed.Del("page")

	if name != "" {
		changed.Set(name, value)
	}

	return path + "?" + changed.Encode()
}

// problem returns the text of an error about the query (400), which the page shows next to the form. If err is any other error,
// it returns err.
func problem(err error) (string, error) {
	if err != nil && httpserver.RefusalOf(err).Status == http.StatusBadRequest {
		return textOf(err), nil
	}

	return "", err
}

// statusOf returns status 400 if there is a problem with the query, and otherwise 200.
func statusOf(problem string) int {
	if problem != "" {
		return http.StatusBadRequest
	}

	return http.StatusOK
}

// numbered is like pager, but for a list with numbered pages.
func numbered(path string, values url.Values, asked operatorserver.Page, page operatorapi.Page) views.Pager {
	links := pager(path, values, page)
	links.CountAll = ""

	if page.TotalCount != nil && asked.Offset+page.Count < *page.TotalCount {
		links.Next = otherPage(path, values, "page", strconv.Itoa(asked.Offset/asked.Size+2))
	}

	return links
}
