package program

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Prefix is the prefix of the environment variables of both services.
const Prefix = "APP_"

// ReadSettings returns the configuration: the defaults, overridden by the variables with the prefix. environment has the form of
// os.Environ.
//
// An empty variable keeps the default, because Helm charts set variables to empty values. A map variable replaces the whole
// default map. ReadSettings ignores unknown variables, which Unknown reports. The error lists all invalid variables and quotes no
// values.
func ReadSettings[Config any](prefix string, defaults Config, environment []string) (Config, error) {
	variables := env.ToMap(environment)
	config := defaults

	err := env.ParseWithOptions(&config, env.Options{Prefix: prefix, Environment: variables})
	if err == nil {
		return config, nil
	}

	var lines []string

	// The library's errors name the field but not the variable. Therefore, parse each variable separately to find the invalid ones.
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if strings.HasPrefix(name, prefix) {
			alone := defaults
			lines = append(lines, describe(name, env.ParseWithOptions(&alone, env.Options{
				Prefix: prefix, Environment: map[string]string{name: variables[name]},
			}))...)
		}
	}

	if len(lines) == 0 { // no variable is invalid, so the struct has a field that the library does not support
		return defaults, fmt.Errorf("reading the configuration: %w", err)
	}

	return defaults, fmt.Errorf("reading the configuration: %s", strings.Join(lines, "; "))
}

// form says how to write a value of the given type, for error messages.
func form(kind reflect.Type) string {
	switch kind {
	case reflect.TypeFor[time.Duration]():
		return "write a duration, such as 90s or 1h30m"
	case reflect.TypeFor[map[string]time.Duration]():
		return "write durations by key, such as key:336h,key:90m"
	case reflect.TypeFor[map[string]string]():
		return "write key:value,key:value"
	case reflect.TypeFor[map[string]int]():
		return "write numbers by key, such as key:3,key:5"
	case reflect.TypeFor[bool]():
		return "write true or false"
	case reflect.TypeFor[float64]():
		return "write a number"
	default:
		return "write an integer"
	}
}

// describe returns a line for each invalid value in the library's error. It does not use the library's messages, because they quote
// the values.
func describe(name string, err error) []string {
	aggregate, _ := errors.AsType[env.AggregateError](err)
	lines := make([]string, 0, len(aggregate.Errors))

	for _, each := range aggregate.Errors {
		if problem, ok := errors.AsType[env.ParseError](each); ok {
			lines = append(lines, fmt.Sprintf("%s: the value is not valid: %s", name, form(problem.Type)))
		}
	}

	return lines
}
