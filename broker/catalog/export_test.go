package catalog

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// CheckBounds returns an error that lists the parts of the schema that accept values of unlimited size, or nil.
func CheckBounds(schema map[string]any) error {
	var found problems

	found.bounded("schema", schema)

	return errors.Join(found...)
}

// PatternText returns the description of a violated pattern.
func PatternText(pattern string) string { return ruleText(&kind.Pattern{Want: pattern}) }
