package program

import (
	"reflect"
	"regexp"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Setting is the value of an environment variable in a running service, without secrets.
type Setting struct {
	// Name is the full name of the variable, such as APP_DATABASE_HOST.
	Name string
	// Value is the value in the notation that ReadSettings parses. It is empty for secrets.
	Value string
	// Changed reports whether the value differs from the default.
	Changed bool
	// Secret reports whether the variable is a secret.
	Secret bool
}

// userInfo matches the credentials in a URL.
var userInfo = regexp.MustCompile(`://[^/@\s,]*@`)

// Settings lists the values of a configuration struct in the order of its fields. defaults and current have the same type.
func Settings(prefix string, defaults, current any) []Setting {
	preset, given := Variables(prefix, defaults), Variables(prefix, current)
	changed := changes(reflect.ValueOf(defaults), reflect.ValueOf(current))
	settings := make([]Setting, 0, len(given))

	for i, variable := range given {
		settings = append(settings, Setting{
			Name: variable.Name, Value: userInfo.ReplaceAllString(variable.Default, "://"+secret.Mask+"@"),
			Changed: changed[i], Secret: preset[i].Secret,
		})
	}

	return settings
}

// changes reports for each variable, in the order of Variables, whether the two structs have different values.
func changes(defaults, current reflect.Value) []bool {
	var changed []bool

	for i := range current.NumField() {
		field := current.Type().Field(i)

		switch _, nested := field.Tag.Lookup("envPrefix"); {
		case nested:
			changed = append(changed, changes(defaults.Field(i), current.Field(i))...)
		case field.Tag.Get("env") != "-":
			changed = append(changed, !reflect.DeepEqual(defaults.Field(i).Interface(), current.Field(i).Interface()))
		}
	}

	return changed
}
