package catalog

import "errors"

// CheckBounds returns the errors of a schema that does not limit the size of what it accepts.
func CheckBounds(schema map[string]any) error {
	var found problems

	found.bounded("schema", schema)

	return errors.Join(found...)
}
