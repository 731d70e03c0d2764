package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// draft is the JSON schema version of all schemas. Cloud Foundry checks a catalog against draft 4 and takes any later one for a
// meta schema that it does not know.
const draft = "http://json-schema.org/draft-04/schema#"

// largestSchema is how long a platform allows a schema to be, in bytes.
const largestSchema = 64 * 1024

// form is what a request may say: a schema as platforms are shown it, and its validator.
type form struct {
	schema    map[string]any
	validator *jsonschema.Schema
}

// newForm makes the form of an object with the properties, in the order in which platforms show them, and of nothing else.
// The fields that begin with an underline are hints for the forms of SAP BTP.
func newForm(place string, properties map[string]any, order, required []string) (form, error) {
	schema := map[string]any{
		"$schema":              draft,
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
		"_controlsOrder":       order,
		"_show_form_view":      true,
	}
	if len(required) > 0 { // draft 4 knows no empty list
		schema["required"] = required
	}

	encoded, err := json.Marshal(schema)
	if err != nil {
		return form{}, fmt.Errorf("encoding the schema of %s: %w", place, err)
	}

	if len(encoded) > largestSchema {
		return form{}, fmt.Errorf("the schema of %s has %d bytes, platforms allow %d", place, len(encoded), largestSchema)
	}

	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		return form{}, fmt.Errorf("reading the schema of %s: %w", place, err)
	}

	const address = "mem:///schema"

	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(address, document); err != nil {
		return form{}, fmt.Errorf("adding the schema of %s: %w", place, err)
	}

	validator, err := compiler.Compile(address)
	if err != nil {
		return form{}, fmt.Errorf("compiling the schema of %s: %w", place, err)
	}

	return form{schema: schema, validator: validator}, nil
}

// read reads what a request says, checked against the schema. No parameters, null and an empty object are the same.
func (f form) read(raw json.RawMessage) (parameters, violations) {
	var (
		given parameters
		wrong violations
	)

	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}

	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		wrong.unless(false, "", ruleJSON, "they are not JSON")

		return given, wrong
	}

	if err := f.validator.Validate(document); err != nil {
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
			return given, violationsOf(invalid)
		}

		wrong.unless(false, "", ruleJSON, "they do not fit the plan's schema")

		return given, wrong
	}

	// Of a field that is written twice the schema has seen the second one, and no more than that may count.
	seen, err := json.Marshal(document)
	if err == nil {
		err = json.Unmarshal(seen, &given)
	}

	if err != nil {
		field := ""
		if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			field = mismatch.Field
		}

		wrong.unless(false, field, ruleJSON, "it is not of the type that the plan's schema tells")
	}

	given.OIDC.check(&wrong)

	return given, wrong
}
