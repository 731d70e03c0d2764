package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

// draft is the version of all schemas. Cloud Foundry supports only draft 4 and rejects catalogs with a later one.
const draft = "http://json-schema.org/draft-04/schema#"

// maxSchema is the maximum schema size that the protocol allows, in bytes.
const maxSchema = 64 * 1024

// form consists of the schema of a request's parameters and the validator compiled from it. Platforms display the
// schema as a form, and the broker checks requests against the same schema.
type form struct {
	schema map[string]any
	// bounds is the schema decoded from JSON, with numbers of type float64. Violations.size reads the limits from it.
	bounds    map[string]any
	validator *jsonschema.Schema
	// updateOnly names the parameters that updates of the plan may contain, but orders may not. It is empty in the form for updates.
	updateOnly []string
}

// newForm returns the form of an object that allows the given properties and no others. Platforms show them in the
// given order; fields that start with an underscore are hints for the forms of SAP BTP. The parameter place
// identifies the schema in errors.
func newForm(place string, properties map[string]any, order, required []string) (form, error) {
	schema := map[string]any{
		"$schema":              draft,
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
		"_controlsOrder":       order,
		"_show_form_view":      true,
	}
	if len(required) > 0 { // draft 4 forbids an empty list
		schema["required"] = required
	}

	encoded, err := json.Marshal(schema)
	if err != nil {
		return form{}, fmt.Errorf("encoding the schema of %s: %w", place, err)
	}

	if len(encoded) > maxSchema {
		return form{}, fmt.Errorf("the schema of %s has %d bytes, but the protocol allows only %d", place, len(encoded), maxSchema)
	}

	// Decode the schema, so that its numbers and lists have the same types whether they come from YAML or from Go code.
	var decoded map[string]any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		return form{}, fmt.Errorf("reading the schema of %s: %w", place, err)
	}

	var found problems

	found.bounded("the schema of "+place, decoded)

	if err := errors.Join(found...); err != nil {
		return form{}, err
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

	return form{schema: schema, bounds: decoded, validator: validator}, nil
}

// read checks the parameters against the schema and decodes them. Missing parameters and null are treated as an
// empty object.
func (f form) read(raw json.RawMessage) (parameters, Violations) {
	var (
		given      parameters
		violations Violations
	)

	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}

	if err := bounds.JSON("the JSON text", raw); err != nil {
		violations.require(false, "", ruleJSON, "%s", err)

		return given, violations
	}

	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		violations.require(false, "", ruleJSON, "the parameters are not valid JSON")

		return given, violations
	}

	violations.size("", document, f.bounds)

	if violations.limit(0); len(violations) > 0 {
		return given, violations
	}

	if err := f.validator.Validate(document); err != nil {
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
			return given, f.violationsOf(invalid)
		}

		violations.require(false, "", ruleJSON, "the parameters do not match the plan's schema")

		return given, violations
	}

	if err := json.Unmarshal(raw, &given); err != nil {
		field, text := "", "the value does not have the type that the plan's schema requires"

		if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			field = mismatch.Field

			// Draft 4 of JSON Schema, which platforms use, allows neither in an integer. The validator does.
			if strings.HasPrefix(mismatch.Value, "number ") {
				text = "must be an integer without a fraction or an exponent"
			}
		}

		violations.require(false, field, ruleJSON, "%s", text)
	}

	given.OIDC.check(&violations)
	given.checkAdministrators(&violations)

	return given, violations
}
