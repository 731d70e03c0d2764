package program

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// serviceLink matches the names of the variables that Kubernetes sets in containers for a Service, without the name of the Service.
var serviceLink = regexp.MustCompile(`^(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// WarnUnknown logs the warnings of Unknown for the variables of a configuration. environment has the form of os.Environ.
func WarnUnknown(log logrus.FieldLogger, prefix string, defaults any, environment []string) {
	for _, warning := range Unknown(prefix, names(prefix, defaults), environment) {
		log.Warn(warning)
	}
}

// names returns the names of the variables of a configuration.
func names(prefix string, defaults any) []string {
	var names []string
	for _, variable := range Variables(prefix, defaults) {
		names = append(names, variable.Name)
	}

	return names
}

// Unknown returns a warning for each variable with the prefix that is not a known one, because it has no effect and may be misspelled. The
// warning names a similar variable if there is one. Unknown ignores empty variables and the variables that Kubernetes sets for Services,
// such as those of a Service named app. environment has the form of os.Environ.
func Unknown(prefix string, known, environment []string) []string {
	var warnings []string

	variables := env.ToMap(environment)

	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if !strings.HasPrefix(name, prefix) || variables[name] == "" || slices.Contains(known, name) || isServiceLink(name, variables) {
			continue
		}

		warnings = append(warnings, fmt.Sprintf("unknown environment variable %s has no effect%s", name, failure.Suggestion(name, known)))
	}

	return warnings
}

// isServiceLink reports whether Kubernetes has set the variable for a Service. Kubernetes sets the host and the port of each Service, so
// a variable such as APP_DATABSE_PORT alone belongs to none.
func isServiceLink(name string, variables map[string]string) bool {
	for host := range variables {
		service, found := strings.CutSuffix(host, "_SERVICE_HOST")
		if !found || variables[service+"_SERVICE_PORT"] == "" {
			continue
		}

		if rest, belongs := strings.CutPrefix(name, service+"_"); belongs && serviceLink.MatchString(rest) {
			return true
		}
	}

	return false
}
