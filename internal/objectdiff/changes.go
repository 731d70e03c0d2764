package objectdiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Change describes a field that writing the wanted object would change.
type Change struct {
	// Path names the field, such as spec.provider.workers[cpu-worker-0].maximum.
	Path string `json:"path"`
	// Present and Wanted are the values as JSON. Present is empty if the write adds the field. Wanted is empty if the write removes
	// the field.
	Present string `json:"present,omitempty"`
	Wanted  string `json:"wanted,omitempty"`
}

// String returns the change as one line.
func (c Change) String() string {
	switch {
	case c.Present == "":
		return fmt.Sprintf("%s: set to %s", c.Path, c.Wanted)
	case c.Wanted == "":
		return fmt.Sprintf("%s: %s is removed", c.Path, c.Present)
	default:
		return fmt.Sprintf("%s: %s becomes %s", c.Path, c.Present, c.Wanted)
	}
}

// Changes returns the fields of the present object that writing the wanted one would change, sorted by path. Like server-side
// apply, it merges objects by their fields and lists of objects by the name or type of the items: fields and items that only the
// present object has do not change. A field is replaced as a whole if opaque returns true for its path. Both objects must be
// convertible to JSON.
func Changes(present, wanted any, opaque func(path string) bool) ([]Change, error) {
	return compare(present, wanted, comparison{opaque: opaque})
}

// Missing returns the paths of the fields in the wanted object that the present object lacks, or in which it has a different value.
// The paths are sorted. A nested object that is missing completely yields only one path. Both objects must be convertible to JSON.
func Missing(present, wanted any) ([]string, error) {
	changes, err := compare(present, wanted, comparison{opaque: func(string) bool { return false }, brief: true})

	return Paths(changes), err
}

// compare returns the changes between the JSON forms of the two objects, sorted by path.
func compare(present, wanted any, comparison comparison) ([]Change, error) {
	had, err := tree(present)
	if err != nil {
		return nil, err
	}

	wants, err := tree(wanted)
	if err != nil {
		return nil, err
	}

	comparison.compare("", had, wants, false)
	slices.SortFunc(comparison.found, func(one, other Change) int { return strings.Compare(one.Path, other.Path) })

	return comparison.found, nil
}

// tree returns the JSON form of a value as maps, lists and plain values.
func tree(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding a value to compare: %w", err)
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	var decoded any

	err = decoder.Decode(&decoded)

	return decoded, err
}

// comparison collects the changes between two trees.
type comparison struct {
	opaque func(path string) bool
	// brief means that a missing nested object yields one change, instead of one for each of its fields.
	brief bool
	found []Change
}

// compare adds the changes to the value at path and to all values nested in it. whole means that wanted replaces had completely,
// so the write removes values that exist in had but not in wanted.
func (c *comparison) compare(path string, had, wanted any, whole bool) {
	whole = whole || c.opaque(path)

	if list, is := wanted.([]any); !whole && (wanted == nil || is && had == nil && len(list) == 0) {
		return // null is not written, and an empty list is equal to a missing list
	}

	if c.brief && had == nil {
		c.found = append(c.found, Change{Path: path, Wanted: text(wanted)})

		return
	}

	if object, is := wanted.(map[string]any); is {
		before, _ := had.(map[string]any)
		c.fields(object, before, whole, func(name string) string { return join(path, name) })

		return
	}

	if items, keyed := byKey(wanted); keyed {
		before, _ := byKey(had)
		c.fields(items, before, whole, func(name string) string { return path + "[" + name + "]" })

		return
	}

	if !reflect.DeepEqual(had, wanted) {
		c.found = append(c.found, Change{Path: path, Present: text(had), Wanted: text(wanted)})
	}
}

// fields compares the fields of two objects, or the items of two lists: for each key in wanted, it compares the two values. If
// whole is true, it also adds a change for each key that exists only in had. pathOf returns the path for a key.
func (c *comparison) fields(wanted, had map[string]any, whole bool, pathOf func(name string) string) {
	for name, value := range wanted {
		c.compare(pathOf(name), had[name], value, whole)
	}

	if !whole {
		return
	}

	for name := range had {
		if _, stays := wanted[name]; !stays {
			c.found = append(c.found, Change{Path: pathOf(name), Present: text(had[name])})
		}
	}
}

// join returns the path of the named field of the object at path. A name that contains a dot or a slash, such as an annotation
// name, is put in brackets.
func join(path, name string) string {
	if strings.ContainsAny(name, "./") {
		return path + "[" + name + "]"
	}

	return strings.TrimPrefix(path+"."+name, ".")
}

// byKey returns the items of a list, keyed by their names or types. It returns false unless the value is a list whose items all
// have distinct names, or all have distinct types.
func byKey(value any) (map[string]any, bool) {
	list, _ := value.([]any)

	for _, key := range []string{"name", "type"} {
		items := map[string]any{}

		for _, each := range list {
			object, _ := each.(map[string]any)
			if name, is := object[key].(string); is {
				items[name] = each
			}
		}

		if len(items) > 0 && len(items) == len(list) {
			return items, true
		}
	}

	return nil, false
}

// text returns a value as JSON, or an empty string for a missing value.
func text(value any) string {
	if value == nil {
		return ""
	}

	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // not reached: a decoded value can be encoded
	}

	return string(encoded)
}

// Paths returns the paths of the changes, sorted and without duplicates.
func Paths(changes []Change) []string {
	paths := map[string]bool{}
	for _, each := range changes {
		paths[each.Path] = true
	}

	return slices.Sorted(maps.Keys(paths))
}
