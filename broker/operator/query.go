package operator

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

const (
	standardPageSize = 50
	largestPageSize  = 100
)

// page is which part of a list is asked for: by number, or behind the place that a cursor names.
type page struct {
	size   int
	offset int
	// total asks for the number of entries on all pages.
	total    bool
	before   time.Time
	beforeID string
}

// readQuery reads the query of a list. A parameter that is not known is refused: who misspells a filter gets no list of everything.
func readQuery(raw string, filters ...string) (url.Values, page, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, page{}, invalid("The query cannot be read.")
	}

	known := append([]string{"cursor", "page", "page_size", "total"}, filters...)
	for name, given := range values {
		if !slices.Contains(known, name) {
			return nil, page{}, invalid(fmt.Sprintf("The parameter %q is not known. Use %s.", name, strings.Join(known, ", ")))
		}

		if len(given) > 1 || strings.ContainsRune(given[0], 0) || strings.ToValidUTF8(given[0], "") != given[0] {
			return nil, page{}, invalid(fmt.Sprintf("The parameter %s has to have one value, a text.", name))
		}
	}

	page, err := readPage(values)

	return values, page, err
}

func readPage(values url.Values) (page, error) {
	size, err := number(values, "page_size", standardPageSize)
	if err != nil || size > largestPageSize {
		return page{}, invalid(fmt.Sprintf("page_size has to be a number from 1 to %d.", largestPageSize))
	}

	const reachable = 1 << 20 // pages; the offset stays far within its type

	index, err := number(values, "page", 1)
	if err != nil || index > reachable {
		return page{}, invalid("page has to be a number from 1 on.")
	}

	total, err := strconv.ParseBool(values.Get("total"))
	if err != nil && values.Has("total") {
		return page{}, invalid("total has to be true or false.")
	}

	found := page{size: size, offset: (index - 1) * size, total: total}

	if cursor := values.Get("cursor"); cursor != "" {
		if values.Has("page") {
			return page{}, invalid("cursor and page cannot be used together.")
		}

		if found.before, found.beforeID, err = readCursor(cursor); err != nil {
			return page{}, invalid("cursor is not one that a list has given out.")
		}
	}

	return found, nil
}

// number returns a positive number, or the standard when it is absent.
func number(values url.Values, name string, standard int) (int, error) {
	if !values.Has(name) {
		return standard, nil
	}

	given, err := strconv.Atoi(values.Get(name))
	if err == nil && given < 1 {
		err = strconv.ErrRange
	}

	return given, err
}

// pageOf cuts a list, which was read with one entry more than fits, and tells where it goes on.
func pageOf[Entry any](entries []Entry, size int, place func(Entry) (time.Time, string)) ([]Entry, operatorapi.Page) {
	if len(entries) <= size {
		return entries, operatorapi.Page{Count: len(entries)}
	}

	entries = entries[:size]

	return entries, operatorapi.Page{Count: size, Cursor: cursorAt(place(entries[size-1]))}
}

// cursorAt names the place behind an entry.
func cursorAt(created time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(created.UTC().Format(time.RFC3339Nano) + " " + id))
}

func readCursor(cursor string) (created time.Time, id string, err error) {
	decoded, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return time.Time{}, "", fmt.Errorf("decoding a cursor: %w", err)
	}

	moment, id, _ := strings.Cut(string(decoded), " ")
	if strings.ContainsRune(id, 0) || strings.ToValidUTF8(id, "") != id {
		return time.Time{}, "", strconv.ErrSyntax
	}

	created, err = time.Parse(time.RFC3339Nano, moment)
	if err != nil {
		return time.Time{}, "", fmt.Errorf("reading the time of a cursor: %w", err)
	}

	return created, id, nil
}
