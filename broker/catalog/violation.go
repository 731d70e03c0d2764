package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Violation is something that is wrong with the parameters of a request.
type Violation struct {
	// Field is the parameter, written like networking.nodes; empty when it is all of them.
	Field string `json:"field"`
	// Rule names what was broken: a keyword of JSON schema, or one of the rules below.
	Rule string `json:"rule"`
	// Message tells people what is wrong. It never repeats what may be secret.
	Message string `json:"message"`
}

// The rules that a JSON schema cannot say.
const (
	ruleJSON        = "json"        // it cannot be read
	ruleUnknown     = "unknown"     // the plan has no such parameter
	ruleRange       = "range"       // a lower bound is above the upper one
	ruleZones       = "zones"       // a zone is not in the region, or there are not enough
	ruleReplacement = "replacement" // no node could ever be replaced
	ruleOffer       = "offer"       // the plan does not have this there
	ruleNetwork     = "network"     // not a usable range of addresses
	ruleOverlap     = "overlap"     // two ranges of addresses share some
	ruleOIDC        = "oidc"        // tokens could not be checked
	ruleKubeconfig  = "kubeconfig"  // the cluster could not be reached
)

// violations collects.
type violations []Violation

func (v *violations) unless(fine bool, field, rule, format string, args ...any) {
	if !fine {
		*v = append(*v, Violation{Field: field, Rule: rule, Message: fmt.Sprintf(format, args...)})
	}
}

// err is nil when there is nothing wrong, else an error of kind invalid that names everything.
func (v violations) err() error {
	if len(v) == 0 {
		return nil
	}

	lines := make([]string, 0, len(v))

	for _, one := range v {
		if one.Field == "" {
			lines = append(lines, one.Message)
		} else {
			lines = append(lines, one.Field+": "+one.Message)
		}
	}

	return failure.New(failure.Invalid, "parameters: %s", strings.Join(lines, "; "))
}

// violationsOf lists what the check of a schema found, sorted by field.
func violationsOf(invalid *jsonschema.ValidationError) violations {
	var found violations

	collect(invalid, message.NewPrinter(language.English), &found)
	slices.SortStableFunc(found, func(a, b Violation) int { return strings.Compare(a.Field, b.Field) })

	return found
}

func collect(invalid *jsonschema.ValidationError, printer *message.Printer, found *violations) {
	for _, cause := range invalid.Causes {
		collect(cause, printer, found)
	}

	if len(invalid.Causes) > 0 {
		return
	}

	field := strings.Join(invalid.InstanceLocation, ".")

	if unknown, ok := invalid.ErrorKind.(*kind.AdditionalProperties); ok {
		for _, name := range unknown.Properties {
			found.unless(false, strings.TrimPrefix(field+"."+name, "."), ruleUnknown, "there is no such parameter")
		}

		return
	}

	found.unless(false, field, strings.Join(invalid.ErrorKind.KeywordPath(), "."), "%s", invalid.ErrorKind.LocalizedString(printer))
}
