package validation

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

const (
	// maxValue limits the value of a configuration entry of Kyma, in characters. Client data has at most bounds.ClientData
	// characters, and all other strings have at most bounds.URL characters.
	maxValue = 64 << 10
	// maxZones limits lists of zones. Other lists have at most maxEntries entries. Labels, and objects in their values, have at most maxLabels
	// fields.
	maxZones  = 16
	maxLabels = 100
)

// sizes rejects strings, lists and labels that are too long, anywhere in an order or upgrade. It reports whether everything is
// within the limits. If not, the other rules must not run, because their cost grows with the sizes, in some cases quadratically.
func (p *problems) sizes(order any) bool {
	p.size("", reflect.ValueOf(order))

	return len(p.texts) == 0
}

// ClientData validates the client data of a rollback, which can be nil. It returns nil or one failure.Invalid.
func ClientData(data *string) error {
	found := problems{title: "the rollback is invalid"}
	found.size("clientData", reflect.ValueOf(data))

	return found.err()
}

// size checks a value and all values that it contains.
func (p *problems) size(field string, value reflect.Value) {
	switch value.Kind() { //nolint:exhaustive // the other kinds have a fixed size
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			p.size(field, value.Elem())
		}
	case reflect.String:
		limit := bounds.URL
		if strings.HasSuffix(field, "].value") {
			limit = maxValue
		}

		if strings.EqualFold(field, "clientData") {
			limit = bounds.ClientData
		}

		length := utf8.RuneCountInString(value.String())
		p.addIf(length > limit, field, "has %d characters, but at most %d are allowed", length, limit)
	case reflect.Slice:
		limit := maxEntries
		if strings.HasSuffix(strings.ToLower(field), "zones") {
			limit = maxZones
		}

		if value.Len() > limit {
			p.add(field, "has %d entries, but at most %d are allowed", value.Len(), limit)

			return
		}

		for i := range value.Len() {
			p.size(fmt.Sprintf("%s[%d]", field, i), value.Index(i))
		}
	case reflect.Map:
		p.sizeOfLabels(field, value)
	case reflect.Struct:
		for i := range value.NumField() {
			p.size(within(field, nameOf(value.Type().Field(i))), value.Field(i))
		}
	}
}

// sizeOfLabels checks the number and the values of labels. Package bounds limits their names.
func (p *problems) sizeOfLabels(field string, labels reflect.Value) {
	if labels.Len() > maxLabels {
		p.add(field, "has %d fields, but at most %d are allowed", labels.Len(), maxLabels)

		return
	}

	for _, name := range labels.MapKeys() {
		p.size(field, labels.MapIndex(name))
	}
}

// nameOf returns the API name of a field. Fields of upgrades have no JSON tags: their Go names differ from the API names only in
// the first letter.
func nameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")

	return cmp.Or(name, strings.ToLower(field.Name[:1])+field.Name[1:])
}

// within returns the path of a field in an object.
func within(object, field string) string {
	if object == "" {
		return field
	}

	return object + "." + field
}
