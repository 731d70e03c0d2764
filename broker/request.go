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
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// longestID bounds ids and regions of a path, in bytes: those of an instance and a binding together are a key.
const longestID = 255

// instanceID returns the id of the instance that the path names.
func instanceID(r *http.Request) (string, error) {
	id, err := segment(r, "instance_id")
	if err == nil {
		httpserver.Note(r.Context(), logging.InstanceID, id)
	}

	return id, err
}

// bindingIDs returns the ids of the instance and of the binding that the path names.
func bindingIDs(r *http.Request) (instance, binding string, err error) {
	if instance, err = instanceID(r); err != nil {
		return "", "", err
	}

	if binding, err = segment(r, "binding_id"); err != nil {
		return "", "", err
	}

	httpserver.Note(r.Context(), logging.BindingID, binding)

	return instance, binding, nil
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
	value, fine := decoded(mux.Vars(r)[name])
	if !fine || strings.Contains(value, environment.BindingPath) {
		return "", invalid(fmt.Sprintf("The %s has to have 1 to %d bytes, no control characters, and not %s.",
			name, longestID, environment.BindingPath))
	}

	return value, nil
}

// decoded returns a part of a path as it was meant, unless it can be no id.
func decoded(sent string) (string, bool) {
	value, err := url.PathUnescape(sent)

	return value, err == nil && printable(value) && len(value) <= longestID
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
