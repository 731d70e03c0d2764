package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// bounded checks that the schema limits the size of everything that it accepts: the length of strings and lists, the range of
// numbers, and the fields of objects. These limits also bound the work for a request. The schema must be decoded from JSON.
func (p *problems) bounded(place string, schema map[string]any) {
	if schema["enum"] != nil {
		return
	}

	has := func(keywords ...string) {
		for _, keyword := range keywords {
			p.require(schema[keyword] != nil, "%s: %s is missing", place, keyword)
		}
	}

	switch kind := schema["type"]; kind {
	case "boolean", "null":
	case "integer", "number":
		has("minimum", "maximum")
	case "string":
		has("maxLength")
	case "array":
		has("maxItems")

		items, _ := schema["items"].(map[string]any)
		p.bounded(place+"[]", items)
	case "object":
		p.boundedFields(place, schema)
	default:
		p.require(false, "%s: type %v must be a single JSON type", place, kind)
	}

	for _, keyword := range []string{"$ref", "allOf", "anyOf", "oneOf", "not", "patternProperties", "dependencies"} {
		p.require(schema[keyword] == nil, "%s: the keyword %s is not supported", place, keyword)
	}
}

// boundedFields checks the schema of an object. If it allows additional fields, it needs a limit on their number and a schema for
// their values. Package bounds limits the length of their names.
func (p *problems) boundedFields(place string, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)

	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any)
		p.bounded(place+"."+name, property)
	}

	switch additional := schema["additionalProperties"].(type) {
	case bool:
		p.require(!additional, "%s: additionalProperties must be false or a schema", place)
	case map[string]any:
		p.require(schema["maxProperties"] != nil, "%s: maxProperties is missing", place)
		p.bounded(place+".*", additional)
	default:
		p.require(false, "%s: additionalProperties is missing", place)
	}
}

// size adds a violation for each string, list and object that is larger than the schema allows. It does not check the contents of
// a list or object that is too large. All other rules are checked only if size adds no violation, because their cost depends on
// the size.
func (v *Violations) size(field string, value any, schema map[string]any) {
	within := func(size int, keyword, one, many string) bool {
		limit, limited := schema[keyword].(float64)
		ok := !limited || size <= int(limit)
		v.require(ok, field, keyword, "must have at most %s, but has %d", counted(int(limit), one, many), size)

		return ok
	}

	switch value := value.(type) {
	case string:
		within(utf8.RuneCountInString(value), "maxLength", "character", "characters")
	case []any:
		items, _ := schema["items"].(map[string]any)
		if !within(len(value), "maxItems", "entry", "entries") {
			return
		}

		for i, item := range value {
			v.size(join(field, strconv.Itoa(i)), item, items)
		}
	case map[string]any:
		if within(len(value), "maxProperties", "field", "fields") {
			v.sizeOfFields(field, value, schema)
		}
	}
}

// sizeOfFields calls v.size for each field of an object. It skips fields that the schema does not allow.
func (v *Violations) sizeOfFields(object string, value, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	additional, _ := schema["additionalProperties"].(map[string]any)

	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if inner, sent := value[name]; sent {
			property, _ := properties[name].(map[string]any)
			v.size(join(object, name), inner, property)
		}
	}

	if additional == nil {
		return
	}

	for _, name := range slices.Sorted(maps.Keys(value)) {
		if properties[name] == nil {
			v.size(join(object, name), value[name], additional)
		}
	}
}

// join returns the path of a field within an object or a list.
func join(object, field string) string {
	if object == "" {
		return field
	}

	return fmt.Sprintf("%s.%s", object, field)
}
