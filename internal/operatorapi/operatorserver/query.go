package operatorserver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	defaultPageSize = 50
	maxPageSize     = 100
)

// Query is the parsed query string of a list request: the filters and the requested page.
type Query struct {
	url.Values

	Page Page
}

// Bool returns the value of the named Boolean parameter, or false if the parameter is absent. Values other than true and false
// are an error.
func (q Query) Bool(name string) (bool, error) { return boolean(q.Values, name) }

// Time returns the value of the named time parameter, or the zero time if the parameter is absent.
func (q Query) Time(name string) (time.Time, error) { return moment(q.Values, name) }

// Page selects a part of a list: by number, or by a cursor, which identifies the last entry of the previous page.
type Page struct {
	Size int
	// Offset is the number of entries on the previous pages. It is 0 if a cursor is used.
	Offset int
	// Total requests the total number of entries on all pages.
	Total bool
	// Before, BeforeID and BeforeKey are the sort key in the cursor. They are zero if no cursor is used. BeforeKey is used only in
	// lists with several sort orders.
	Before              time.Time
	BeforeID, BeforeKey string
}

// withQuery parses the query and passes it to the endpoint. allowed lists the parameters that openapi.yaml defines for the route.
// Other parameters are rejected: if a misspelled filter were ignored, the list would contain all entries.
func withQuery(endpoint func(*http.Request, Query) (httpserver.Response, error), allowed ...string) httpserver.Endpoint {
	return func(r *http.Request) (httpserver.Response, error) {
		query, err := ReadQuery(r.URL.RawQuery, allowed...)
		if err != nil {
			return httpserver.Response{}, err
		}

		return endpoint(r, query)
	}
}

// ReadQuery parses the query of a URL. It rejects parameters that are unknown or repeated, and values that the database cannot store, such
// as invalid UTF-8.
func ReadQuery(raw string, allowed ...string) (Query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return Query{}, Invalid("The query is not properly URL-encoded.")
	}

	for name, given := range values {
		if !slices.Contains(allowed, name) {
			return Query{}, Unknown("parameter", name, allowed)
		}

		if len(given) > 1 || !storage.IsText(given[0]) {
			return Query{}, Invalid(fmt.Sprintf("The %s parameter must occur only once, and its value must be valid UTF-8 without NUL characters.", name))
		}
	}

	page, err := readPage(values)

	return Query{Values: values, Page: page}, err
}

// readPage reads page_size, page, cursor and total. When entries are added, numbered pages shift; pages that are
// selected by a cursor do not.
func readPage(values url.Values) (Page, error) {
	size := number(values, "page_size", defaultPageSize)
	if size < 1 || size > maxPageSize {
		return Page{}, Invalid(fmt.Sprintf("page_size must be a number from 1 to %d.", maxPageSize))
	}

	const maxPage = 1 << 20 // prevents an overflow of the offset

	index := number(values, "page", 1)
	if index < 1 || index > maxPage {
		return Page{}, Invalid("page must be a positive number.")
	}

	total, err := boolean(values, "total")
	if err != nil {
		return Page{}, err
	}

	found := Page{Size: size, Offset: (index - 1) * size, Total: total}

	if cursor := values.Get("cursor"); cursor != "" {
		if values.Has("page") {
			return Page{}, Invalid("cursor and page cannot be used together.")
		}

		last, valid := storage.ParseCursor(cursor)
		if !valid {
			return Page{}, Invalid("cursor is invalid. Use the cursor of the previous page.")
		}

		if err := sameSort(last.Sort, values.Get("sort")); err != nil {
			return Page{}, err
		}

		found.Before, found.BeforeID, found.BeforeKey = last.At, last.ID, last.Key
	}

	return found, nil
}

// sameSort rejects the cursor of a list with a different sort order, because its position is meaningless in this list. A cursor
// without a sort order belongs to a list in the default order, newest first.
func sameSort(of, wanted string) error {
	const newest = "newest"

	if of, wanted = cmp.Or(of, newest), cmp.Or(wanted, newest); of != wanted {
		return Invalid(fmt.Sprintf("cursor belongs to a list with sort=%s, not sort=%s. Use the cursor of the previous page, or begin with the first page.", of, wanted))
	}

	return nil
}

// number returns the value of a numeric parameter. It returns fallback if the parameter is absent, and 0 if the value is not a
// number.
func number(values url.Values, name string, fallback int) int {
	if !values.Has(name) {
		return fallback
	}

	given, err := strconv.Atoi(values.Get(name))
	if err != nil {
		return 0
	}

	return given
}

// boolean returns the value of a parameter, which must be true or false, or false if the parameter is absent.
func boolean(values url.Values, name string) (bool, error) {
	given, err := strconv.ParseBool(values.Get(name))
	if err != nil && values.Has(name) {
		return false, Invalid(name + " must be true or false.")
	}

	return given, nil
}

// period returns the values of the since parameter (inclusive) and the until parameter (exclusive). The value of an absent
// parameter is the zero time.
func period(values url.Values) (since, until time.Time, err error) {
	if since, err = moment(values, "since"); err == nil {
		until, err = moment(values, "until")
	}

	return since, until, err
}

// moment returns the value of a parameter, which must be a time in the years that databases can compare, or the zero time if the
// parameter is absent.
func moment(values url.Values, name string) (time.Time, error) {
	if !values.Has(name) {
		return time.Time{}, nil
	}

	given, err := time.Parse(time.RFC3339, values.Get(name))
	if err != nil || !storage.IsTime(given) {
		return time.Time{}, Invalid(name + " must be a time such as 2030-01-02T15:04:05Z.")
	}

	return given, nil
}

// ReadList reads one page of a list from a store. The limit in the filter must be the page size plus one: the additional entry
// shows that another page exists. place returns the sort key of an entry, which becomes the cursor of the next page. count is
// called only if the total is requested; it may be nil for lists without a total.
func ReadList[Filter, Entry, Shown any](ctx context.Context, page Page, filter Filter,
	read func(context.Context, Filter) ([]Entry, error), count func(context.Context, Filter) (int, error),
	show func(Entry) Shown, place func(Shown) (time.Time, string),
) ([]Shown, operatorapi.Page, error) {
	entries, err := read(ctx, filter)
	if err != nil {
		return nil, operatorapi.Page{}, err
	}

	shown := make([]Shown, 0, len(entries))
	for _, entry := range entries[:min(len(entries), page.Size)] {
		shown = append(shown, show(entry))
	}

	result := operatorapi.Page{Count: len(shown)}
	if len(entries) > page.Size {
		at, id := place(shown[page.Size-1])
		result.Cursor = storage.Cursor{At: at, ID: id}.String()
	}

	if page.Total {
		total, err := count(ctx, filter)
		if err != nil {
			return nil, operatorapi.Page{}, err
		}

		result.TotalCount = &total
	}

	return shown, result, nil
}
