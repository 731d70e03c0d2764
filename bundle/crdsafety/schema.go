package crdsafety

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

// comparison compares two schemas and reports the unsafe changes.
type comparison struct {
	report func(field, problem string)
}

// schema compares the schemas of a field, and reports each change that makes the field reject values that it accepted before.
func (c comparison) schema(field string, before, after *schema) {
	c.kind(field, before, after)
	c.values(field, before, after)
	c.limits(field, before, after)
	c.combined(field, before, after)
	c.properties(field, before, after)
	c.additional(field, before, after)

	if before.Items != nil && before.Items.Schema != nil && after.Items != nil && after.Items.Schema != nil {
		c.schema(field+"[]", before.Items.Schema, after.Items.Schema)
	} else if after.Items != nil && before.Items == nil && before.Type == after.Type {
		c.report(field, "the elements now have a schema")
	}
}

// kind compares the type, the nullability and the format of a field.
func (c comparison) kind(field string, before, after *schema) {
	switch {
	case before.XIntOrString && !after.XIntOrString:
		c.report(field, "the field no longer accepts both numbers and strings")
	case before.Type != after.Type && !after.XIntOrString && after.Type != "" && (before.Type != "integer" || after.Type != "number"):
		c.report(field, fmt.Sprintf("the type changes from %q to %q", before.Type, after.Type))
	}

	if before.Nullable && !after.Nullable {
		c.report(field, "null is no longer permitted")
	}

	if after.Format != "" && before.Format != after.Format {
		c.report(field, fmt.Sprintf("the format changes from %q to %q", before.Format, after.Format))
	}
}

// values compares the enum, the pattern and the default of a field.
func (c comparison) values(field string, before, after *schema) {
	switch {
	case len(after.Enum) > 0 && len(before.Enum) == 0:
		c.report(field, "only certain values are permitted")
	case len(after.Enum) > 0:
		permitted := map[string]bool{}
		for _, value := range after.Enum {
			permitted[string(value.Raw)] = true
		}

		for _, value := range before.Enum {
			if !permitted[string(value.Raw)] {
				c.report(field, fmt.Sprintf("the value %s is no longer permitted", value.Raw))
			}
		}
	}

	if after.Pattern != "" && before.Pattern != after.Pattern {
		c.report(field, fmt.Sprintf("the pattern changes from %q to %q", before.Pattern, after.Pattern))
	}

	switch {
	case before.Default == nil:
	case after.Default == nil:
		c.report(field, fmt.Sprintf("the default %s is removed", before.Default.Raw))
	case !sameJSON(before.Default.Raw, after.Default.Raw):
		c.report(field, fmt.Sprintf("the default changes from %s to %s", before.Default.Raw, after.Default.Raw))
	}
}

func sameJSON(a, b []byte) bool {
	var first, second any

	return bytes.Equal(a, b) || json.Unmarshal(a, &first) == nil && json.Unmarshal(b, &second) == nil && reflect.DeepEqual(first, second)
}

// limits compares the numeric limits of a field and, for a list, the rules for its elements.
func (c comparison) limits(field string, before, after *schema) {
	lower(c, field, "minimum", before.Minimum, after.Minimum)
	upper(c, field, "maximum", before.Maximum, after.Maximum)
	lower(c, field, "minLength", before.MinLength, after.MinLength)
	upper(c, field, "maxLength", before.MaxLength, after.MaxLength)
	lower(c, field, "minItems", before.MinItems, after.MinItems)
	upper(c, field, "maxItems", before.MaxItems, after.MaxItems)
	lower(c, field, "minProperties", before.MinProperties, after.MinProperties)
	upper(c, field, "maxProperties", before.MaxProperties, after.MaxProperties)

	if after.ExclusiveMinimum && !before.ExclusiveMinimum && sameLimit(before.Minimum, after.Minimum) {
		c.report(field, "the minimum itself is no longer permitted")
	}

	if after.ExclusiveMaximum && !before.ExclusiveMaximum && sameLimit(before.Maximum, after.Maximum) {
		c.report(field, "the maximum itself is no longer permitted")
	}

	if after.MultipleOf != nil && (before.MultipleOf == nil || *before.MultipleOf != *after.MultipleOf) {
		c.report(field, fmt.Sprintf("only multiples of %v are permitted", *after.MultipleOf))
	}

	if after.UniqueItems && !before.UniqueItems {
		c.report(field, "duplicate elements are no longer permitted")
	}

	listType := func(one *schema) string {
		kind := "atomic"
		if one.XListType != nil {
			kind = *one.XListType
		}

		return strings.TrimSpace(kind + " " + strings.Join(one.XListMapKeys, ","))
	}
	if was, is := listType(before), listType(after); was != is && is != "atomic" {
		c.report(field, fmt.Sprintf("the list type changes from %s to %s", was, is))
	}
}

func sameLimit(before, after *float64) bool {
	return before != nil && after != nil && *before == *after
}

// lower reports that a lower limit was added or increased. upper reports that an upper limit was added or decreased.
func lower[T cmp.Ordered](c comparison, field, name string, before, after *T) {
	if after != nil && (before == nil || *after > *before) {
		c.report(field, limitText(name, before, *after))
	}
}

func upper[T cmp.Ordered](c comparison, field, name string, before, after *T) {
	if after != nil && (before == nil || *after < *before) {
		c.report(field, limitText(name, before, *after))
	}
}

func limitText[T any](name string, before *T, after T) string {
	if before == nil {
		return fmt.Sprintf("a limit is added: %s %v", name, after)
	}

	return fmt.Sprintf("%s changes from %v to %v", name, *before, after)
}

// combined compares the keywords that combine schemas, such as allOf. Because it does not compute which values the combination
// accepts, it reports every change except a removal.
func (c comparison) combined(field string, before, after *schema) {
	for name, both := range map[string][2][]schema{
		"allOf": {before.AllOf, after.AllOf}, "anyOf": {before.AnyOf, after.AnyOf}, "oneOf": {before.OneOf, after.OneOf},
	} {
		if len(both[1]) > 0 && !reflect.DeepEqual(both[0], both[1]) {
			c.report(field, fmt.Sprintf("the keyword %q changes", name))
		}
	}

	if after.Not != nil && !reflect.DeepEqual(before.Not, after.Not) {
		c.report(field, `the keyword "not" changes`)
	}
}

// properties compares the listed fields of an object.
func (c comparison) properties(field string, before, after *schema) {
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		former := before.Properties[name]

		current, kept := after.Properties[name]
		if kept {
			c.schema(field+"."+name, &former, &current)
		} else if !preserves(after) {
			c.report(field+"."+name, "the field is removed")
		}
	}

	for _, name := range after.Required {
		if !slices.Contains(before.Required, name) && after.Properties[name].Default == nil {
			c.report(field+"."+name, "the field is now required")
		}
	}
}

// preserves reports whether the API server keeps fields of an object that the schema does not list.
func preserves(one *schema) bool {
	return one.XPreserveUnknownFields != nil && *one.XPreserveUnknownFields || one.AdditionalProperties != nil && one.AdditionalProperties.Allows
}

// additional compares the schemas that apply to the fields of an object that are not listed in properties.
func (c comparison) additional(field string, before, after *schema) {
	was, is := before.AdditionalProperties, after.AdditionalProperties

	switch {
	case was != nil && was.Schema != nil && is != nil && is.Schema != nil:
		c.schema(field+".*", was.Schema, is.Schema)
	case was != nil && (was.Allows || was.Schema != nil) && (is == nil || !is.Allows && is.Schema == nil) && !preserves(after):
		c.report(field, "additional fields are no longer permitted")
	case is != nil && is.Schema != nil && was == nil && preserves(before):
		c.report(field, "additional fields now have a schema")
	case before.XPreserveUnknownFields != nil && *before.XPreserveUnknownFields && !preserves(after) && (is == nil || is.Schema == nil):
		c.report(field, "unknown fields are no longer preserved")
	}
}
