package validation

import (
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

// Adoption validates the strings in an order to adopt a Shoot; the Shoot itself needs no validation. order is a struct whose
// fields have the API's names; name and administrators are the values of two of these fields. Adoption returns nil or one
// failure.Invalid.
func Adoption(order any, name string, administrators []string) error {
	found := problems{title: "the adoption is invalid"}

	if found.sizes(order) {
		found.addIf(utf8.RuneCountInString(name) > bounds.Name, "name", "has more than %d characters", bounds.Name)
		found.administrators("administrators", administrators)
	}

	return found.err()
}
