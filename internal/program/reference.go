package program

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Variable describes an environment variable for the reference page.
type Variable struct {
	// Name is the full name with all prefixes, such as APP_DATABASE_HOST.
	Name string
	// Default is the default value in the notation that ReadSettings parses. It is empty for secrets, even if the default is
	// well known.
	Default string
	Help    string
	// Secret reports whether the variable's type hides the value, as secret.String does.
	Secret bool
}

// Variables lists the variables of a configuration struct in the order of its fields. The values of the struct are the defaults.
func Variables(prefix string, defaults any) []Variable {
	return variables(prefix, reflect.ValueOf(defaults))
}

// variables lists the variables of a struct and of its nested structs.
func variables(prefix string, config reflect.Value) []Variable {
	var found []Variable

	for i := range config.NumField() {
		field := config.Type().Field(i)

		if nested, ok := field.Tag.Lookup("envPrefix"); ok {
			found = append(found, variables(prefix+nested, config.Field(i))...)

			continue
		}

		if field.Tag.Get("env") == "-" {
			continue // set by the program, not by a variable
		}

		found = append(found, Variable{
			Name:    prefix + field.Tag.Get("env"),
			Default: show(config.Field(i)),
			Help:    field.Tag.Get("help"),
			Secret:  field.Type == reflect.TypeFor[secret.String](),
		})
	}

	return found
}

// show formats a default in the notation that ReadSettings parses. Map entries are sorted to keep the generated page stable.
func show(value reflect.Value) string {
	if _, hidden := reflect.TypeAssert[secret.String](value); hidden {
		return ""
	}

	if list, ok := reflect.TypeAssert[[]string](value); ok {
		return strings.Join(list, ",")
	}

	if value.Kind() != reflect.Map {
		return fmt.Sprint(value.Interface())
	}

	pairs := make([]string, 0, value.Len())
	for key, each := range value.Seq2() {
		pairs = append(pairs, fmt.Sprintf("%v:%v", key, each))
	}

	slices.Sort(pairs)

	return strings.Join(pairs, ",")
}
