package broker

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gorilla/mux"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/rest"
)

// longestID bounds ids and regions of a path, in characters.
const longestID = 255

// instanceID returns the id of the instance that the path names.
func instanceID(r *http.Request) (string, error) {
	id, err := segment(r, "instance_id")
	if err == nil {
		rest.Note(r.Context(), logging.InstanceID, id)
	}

	return id, err
}

// bindingID returns the id of the binding that the path names.
func bindingID(r *http.Request) (string, error) {
	id, err := segment(r, "binding_id")
	if err == nil {
		rest.Note(r.Context(), logging.BindingID, id)
	}

	return id, err
}

// region returns the platform's region that the path names, else the default.
func (a *api) region(r *http.Request) (string, error) {
	if _, named := mux.Vars(r)["region"]; !named {
		return a.DefaultRegion, nil
	}

	return segment(r, "region")
}

// segment returns a part of the path, decoded: `a%2Db` names what `a-b` names.
func segment(r *http.Request, name string) (string, error) {
	value, err := url.PathUnescape(mux.Vars(r)[name])
	if err != nil || !printable(value) || strings.Contains(value, environment.BindingPath) || utf8.RuneCountInString(value) > longestID {
		return "", invalid(fmt.Sprintf("The %s has to have 1 to %d characters, no control characters, and not %s.",
			name, longestID, environment.BindingPath))
	}

	return value, nil
}

// printable reports whether a text can be stored and shown.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(char rune) bool { return unicode.IsControl(char) || char == utf8.RuneError })
}

// query returns the query of the request.
func query(r *http.Request) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("The query cannot be read.")
	}

	return values, nil
}

// acceptsIncomplete reports whether the platform can wait for the end of an operation.
func acceptsIncomplete(values url.Values) bool { return values.Get("accepts_incomplete") == "true" }
