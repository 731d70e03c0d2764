package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// draft is the JSON schema version of all schemas. Cloud Foundry checks a catalog against draft 4 and takes any later one for a
// meta schema that it does not know.
const draft = "http://json-schema.org/draft-04/schema#"

// largestSchema is how long a platform allows a schema to be, in bytes.
const largestSchema = 64 * 1024

// schema returns the schema of an object with the properties, and of nothing else.
func schema(properties map[string]any, order []string) map[string]any {
	return map[string]any{
		"$schema":              draft,
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
		"_controlsOrder":       order,
	}
}

// createSchema is what an order of the plan may say.
func (p *Plan) createSchema() map[string]any {
	properties := map[string]any{}

	for _, name := range p.Parameters {
		properties[name] = parameterSchemas()[name](p)
	}

	return schema(properties, p.Parameters)
}

// nothing is the schema of a request that has no parameters.
func nothing() map[string]any { return schema(map[string]any{}, []string{}) }

// compile makes the validator of the schema that the catalog shows.
func (p *Plan) compile() error {
	encoded, err := json.Marshal(p.createSchema())
	if err != nil {
		return fmt.Errorf("encoding the schema of plan %s: %w", p.Name, err)
	}

	if len(encoded) > largestSchema {
		return fmt.Errorf("the schema of plan %s has %d bytes, platforms allow %d", p.Name, len(encoded), largestSchema)
	}

	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		return fmt.Errorf("reading the schema of plan %s: %w", p.Name, err)
	}

	compiler := jsonschema.NewCompiler()
	place := "mem:///plans/" + p.Name

	if err := compiler.AddResource(place, document); err != nil {
		return fmt.Errorf("adding the schema of plan %s: %w", p.Name, err)
	}

	p.create, err = compiler.Compile(place)
	if err != nil {
		return fmt.Errorf("compiling the schema of plan %s: %w", p.Name, err)
	}

	return nil
}

// decode reads what an order says, checked against the schema of the plan.
func (p *Plan) decode(raw json.RawMessage) (parameters, error) {
	var given parameters

	if len(raw) == 0 || string(raw) == "null" {
		return given, nil
	}

	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return given, failure.Wrap(failure.Invalid, err, "the parameters are not JSON")
	}

	if err := p.create.Validate(document); err != nil {
		return given, failure.Wrap(failure.Invalid, err, "parameters: %s", explain(err))
	}

	if err := json.Unmarshal(raw, &given); err != nil {
		return given, failure.Wrap(failure.Invalid, err, "a parameter is not of the type that the plan's schema tells")
	}

	return given, nil
}

// explain lists what a validation found, each with its place.
func explain(err error) string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return "they do not fit the plan's schema"
	}

	var found []string

	collect(invalid, message.NewPrinter(language.English), &found)
	slices.Sort(found)

	return strings.Join(found, "; ")
}

func collect(invalid *jsonschema.ValidationError, printer *message.Printer, found *[]string) {
	for _, cause := range invalid.Causes {
		collect(cause, printer, found)
	}

	if len(invalid.Causes) > 0 {
		return
	}

	text := invalid.ErrorKind.LocalizedString(printer)
	if len(invalid.InstanceLocation) > 0 {
		text = strings.Join(invalid.InstanceLocation, ".") + ": " + text
	}

	*found = append(*found, text)
}
