package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// TestBindingParametersFollowTheirSchema checks that the published schema and the broker accept the same parameters.
func TestBindingParametersFollowTheirSchema(t *testing.T) {
	t.Parallel()

	admin := catalog.BindingParameters{Role: environment.RoleAdmin, Lifetime: 10 * time.Minute}

	cases := map[string]struct {
		reason string
		want   *catalog.BindingParameters
	}{
		`{}`:                            {"no parameter is required", &admin},
		`{"role": "view"}`:              {"the role must exist", &catalog.BindingParameters{Role: environment.RoleView, Lifetime: 10 * time.Minute}},
		`{"expiration_seconds": 7200}`:  {"the longest", &catalog.BindingParameters{Role: environment.RoleAdmin, Lifetime: 2 * time.Hour}},
		`{"expiration_seconds": 600.0}`: {"equal to an integer in any notation", &admin},
		`{"expiration_seconds": 599}`:   {"too short", nil},
		`{"expiration_seconds": 7201}`:  {"too long", nil},
		`{"expiration_seconds": 650.5}`: {"not whole", nil},
		`{"expiration_seconds": "600"}`: {"no number", nil},
		`{"role": "owner"}`:             {"no role", nil},
		`{"role": ""}`:                  {"the role must not be empty", nil},
		`{"role": 1}`:                   {"no text", nil},
		`{"user": "me"}`:                {"unknown parameters are rejected", nil},
	}

	schema := compiled(t, read(t).Services[0].Plans[0].Schemas["service_binding"]["create"]["parameters"])

	for text, c := range cases {
		got, err := catalog.ResolveBinding(json.RawMessage(text))
		if (err == nil) != (c.want != nil) || err == nil && !cmp.Equal(*c.want, got) {
			t.Errorf("%s: %s: got %v, %v", text, c.reason, got, err)
		}

		document, parsed := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if parsed != nil {
			t.Fatal(parsed)
		}

		if shown := schema.Validate(document); (shown == nil) != (err == nil) {
			t.Errorf("%s: the schema returns %v, the broker %v", text, shown, err)
		}
	}
}

// TestBindingErrorsNameParameters checks the error messages for unknown parameters and invalid values.
func TestBindingErrorsNameParameters(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`{"rolle": "view"}`: `parameters: rolle: bindings have no such parameter; did you mean "role"?`,
		`{"role": "views"}`: `parameters: role: must be one of admin, edit, view; did you mean "view"?`,
		`{"user": "me", "expiration_seconds": "1h"}`: "parameters: expiration_seconds: must be an integer from 600 to 7200; " +
			"user: bindings have no such parameter",
		`{"role": 7}`: "parameters: role: must be one of admin, edit, view",
		`["view"]`:    "parameters: must be an object",
	} {
		if _, err := catalog.ResolveBinding(json.RawMessage(text)); err == nil || failure.Of(err).Text != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func compiled(t *testing.T, shown any) *jsonschema.Schema {
	t.Helper()

	encoded, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}

	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(encoded)))
	if err != nil {
		t.Fatal(err)
	}

	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:///binding", document); err != nil {
		t.Fatal(err)
	}

	schema, err := compiler.Compile("mem:///binding")
	if err != nil {
		t.Fatal(err)
	}

	return schema
}
