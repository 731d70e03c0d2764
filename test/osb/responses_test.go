package osb

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/test/harness"
)

// camelCase matches an error code, which must be one CamelCase word.
var camelCase = regexp.MustCompile(`^([A-Z][a-z]+)+$`)

// checkResponse checks the requirements that apply to every response, and validates the response against the OpenAPI description.
func checkResponse(reporter harness.Reporter, call harness.Call, got harness.Reply) {
	reporter.Helper()

	place := call.Method + " " + call.Path

	if sent, given := call.Header[identityHeaderKey]; given && len(sent) > 0 && len(sent[0]) <= bounds.ID && got.Header.Get(identityHeader) != sent[0] ||
		!given && got.Header.Get(identityHeader) != identity {
		reporter.Errorf("A7: %s: the request identity in the response is %q", place, got.Header.Get(identityHeader))
	}

	if got.Raw != "" && got.Header.Get("Content-Type") != "application/json" {
		reporter.Errorf("A17: %s: the content type is %q", place, got.Header.Get("Content-Type"))
	}

	if got.Raw != "" && got.Body == nil {
		reporter.Errorf("J16: %s: the body is not a JSON object: %.200s", place, got.Raw)
	}

	if code, given := got.Body["error"]; given && !camelCase.MatchString(got.Text("error")) {
		reporter.Errorf("A12: %s: the code is %v", place, code)
	}

	if description, given := got.Body["description"]; given || got.Status >= http.StatusBadRequest {
		if text := got.Text("description"); text == "" || utf8.RuneCountInString(text) > 255 {
			reporter.Errorf("A13, A26: %s: the description is %v", place, description)
		}
	}

	checkUsability(reporter, call, got)
	checkDocumented(reporter, place, got)

	successes := []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNotModified}
	if got.Status < http.StatusBadRequest && !slices.Contains(successes, got.Status) {
		reporter.Errorf("J16: %s: status %d", place, got.Status)
	}

	if err := validate(call.Method, call.Path, got.Status, got.Raw); err != nil {
		reporter.Errorf("%s: the response violates the OpenAPI description: %v\n%.500s", place, err, got.Raw)
	}
}

// checkDocumented checks that docs/user/errors.md describes the error. The page is generated from [broker.ErrorCatalog].
func checkDocumented(reporter harness.Reporter, place string, got harness.Reply) {
	reporter.Helper()

	catalog, err := broker.ErrorCatalog()
	if err != nil {
		reporter.Errorf("reading the error catalog: %v", err)
	}

	documented := slices.ContainsFunc(catalog, func(documented broker.DocumentedError) bool {
		return documented.Status == got.Status && documented.Code == got.Text("error")
	})

	if got.Status >= http.StatusBadRequest && !documented {
		reporter.Errorf("%s: %d %q is missing from broker/error_catalog.yaml: add it, then run `make generate`", place, got.Status, got.Text("error"))
	}
}

var identityHeaderKey = http.CanonicalHeaderKey(identityHeader)

// checkUsability checks that a response contains usability hints only where the specification defines them, and that the hints
// are booleans.
func checkUsability(reporter harness.Reporter, call harness.Call, got harness.Reply) {
	reporter.Helper()

	usable, hasUsable := got.Body["instance_usable"]
	repeatable, hasRepeatable := got.Body["update_repeatable"]

	if !hasUsable && !hasRepeatable {
		return
	}

	polls := routeOf(call.Path) == routeInstancePoll
	updates := polls || call.Method == http.MethodPatch && routeOf(call.Path) == routeInstance
	deletes := polls || call.Method == http.MethodDelete && routeOf(call.Path) == routeInstance

	if hasUsable && !updates && !deletes || hasRepeatable && !updates ||
		got.Status < http.StatusBadRequest && got.Text("state") != "failed" {
		reporter.Errorf("A20, C13: %s %s returns instance_usable or update_repeatable: %s", call.Method, call.Path, got.Raw)
	}

	for _, value := range []any{usable, repeatable} {
		if _, isBool := value.(bool); value != nil && !isBool {
			reporter.Errorf("F15: %s %s: %v is not a boolean", call.Method, call.Path, value)
		}
	}
}

// encode encodes a value as JSON.
func encode(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}

	return string(encoded)
}
