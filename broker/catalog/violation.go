package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Violation is a broken rule for the parameters of a request. The response to a validation contains its JSON form.
type Violation struct {
	// Field is the name of the parameter, such as networking.nodes. It is empty if the rule concerns all
	// parameters.
	Field string `json:"field"`
	// Rule is a JSON schema keyword or one of the rules below.
	Rule string `json:"rule"`
	// Message describes the violation to users. It contains no secrets.
	Message string `json:"message"`
}

// Rules that a JSON schema cannot express.
const (
	ruleJSON        = "json"        // the parameters are malformed
	ruleUnknown     = "unknown"     // the plan has no such parameter
	ruleCreateOnly  = "createOnly"  // an update changes a create-only parameter
	ruleRange       = "range"       // a lower bound is above the upper one
	ruleZones       = "zones"       // a zone is not in the region, or there are too few nodes for the zones
	ruleReplacement = "replacement" // no node could ever be replaced
	ruleOffer       = "offer"       // not available in the plan or the region
	ruleNetwork     = "network"     // not a usable range of addresses
	ruleOverlap     = "overlap"     // two ranges of addresses overlap
	ruleOIDC        = "oidc"        // the issuer is unusable
	ruleKubeconfig  = "kubeconfig"  // the kubeconfig is unusable
)

// Violations are all broken rules of a request. If there are none, the parameters are valid.
type Violations []Violation

// require adds a violation unless the condition is true.
func (v *Violations) require(ok bool, field, rule, format string, args ...any) {
	if !ok {
		*v = append(*v, Violation{Field: field, Rule: rule, Message: fmt.Sprintf(format, args...)})
	}
}

// Err returns an error of kind invalid that lists all violations, or nil if there are none.
func (v Violations) Err() error {
	if len(v) == 0 {
		return nil
	}

	lines := make([]string, 0, len(v))

	for _, one := range v {
		switch {
		case one.Field == "":
			lines = append(lines, one.Message)
		case one.Rule == ruleCreateOnly: // the field is the subject of the message
			lines = append(lines, one.Field+" "+one.Message)
		default:
			lines = append(lines, one.Field+": "+one.Message)
		}
	}

	return failure.New(failure.Invalid, "parameters: %s", strings.Join(lines, "; "))
}

// violationsOf converts the error of a schema check. It sorts the violations by field, because the library returns
// them in random order. For an unknown parameter, it suggests a similar name from the schema.
func violationsOf(invalid *jsonschema.ValidationError, schema map[string]any) Violations {
	var violations Violations

	collect(invalid, &violations)

	for i, one := range violations {
		if one.Rule == ruleUnknown {
			path := strings.Split(one.Field, ".")
			violations[i].Message += failure.Suggestion(path[len(path)-1], namesAt(schema, path[:len(path)-1]))
		}
	}

	slices.SortStableFunc(violations, func(a, b Violation) int { return strings.Compare(a.Field, b.Field) })

	return violations
}

// namesAt returns the names of the parameters in the object at the path. It returns none if the path leads through
// a list.
func namesAt(schema map[string]any, path []string) []string {
	for _, name := range path {
		properties, _ := schema["properties"].(map[string]any)
		schema, _ = properties[name].(map[string]any)
	}

	properties, _ := schema["properties"].(map[string]any)

	return slices.Sorted(maps.Keys(properties))
}

// collect walks a tree of validation errors and adds a violation for each leaf. The inner nodes only group errors.
func collect(invalid *jsonschema.ValidationError, violations *Violations) {
	for _, cause := range invalid.Causes {
		collect(cause, violations)
	}

	if len(invalid.Causes) > 0 {
		return
	}

	field := strings.Join(invalid.InstanceLocation, ".")

	if unknown, ok := invalid.ErrorKind.(*kind.AdditionalProperties); ok {
		for _, name := range unknown.Properties {
			violations.require(false, strings.TrimPrefix(field+"."+name, "."), ruleUnknown, "the plan has no such parameter")
		}

		return
	}

	violations.require(false, field, strings.Join(invalid.ErrorKind.KeywordPath(), "."), "%s", ruleText(invalid.ErrorKind))
}
