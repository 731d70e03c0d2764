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
	// Rule is a JSON schema keyword, one of the rules below, or a rule of package broker.
	Rule string `json:"rule"`
	// Message describes the violation to users. It contains no secrets.
	Message string `json:"message"`
}

// Rules that are not JSON schema keywords.
const (
	ruleJSON        = "json"        // the parameters are malformed
	ruleUnknown     = "unknown"     // the plan has no such parameter
	ruleCreateOnly  = "createOnly"  // an update changes a create-only parameter
	ruleUpdateOnly  = "updateOnly"  // an order contains a parameter that only updates may contain
	ruleRange       = "range"       // a value is out of range, or a lower bound exceeds its upper bound
	ruleZones       = "zones"       // a zone is not in the region, or there are too few nodes for the zones
	ruleReplacement = "replacement" // no node could ever be replaced
	ruleOffer       = "offer"       // not available in the plan or the region
	ruleNetwork     = "network"     // not a usable address range
	ruleOverlap     = "overlap"     // two address ranges overlap
	ruleOIDC        = "oidc"        // the OpenID Connect configuration is unusable or contradictory
	ruleControl     = "control"     // a string contains control characters
	ruleModules     = "modules"     // the chosen modules are contradictory or incomplete
	ruleKubeconfig  = "kubeconfig"  // the kubeconfig is unusable
	ruleMore        = "more"        // stands for the violations that are not listed
)

const (
	// maxViolations is the maximum number of violations in a response.
	maxViolations = 20
	// maxField is the maximum length of a parameter's name in a violation, in characters. Clients choose the names of unknown
	// parameters.
	maxField = 100
)

// Violations are the broken rules of a request: at most maxViolations, followed by one that counts the rest. If there are none,
// the parameters are valid.
type Violations []Violation

// require adds a violation unless the condition is true.
func (v *Violations) require(ok bool, field, rule, format string, args ...any) {
	if !ok {
		*v = append(*v, Violation{Field: failure.Shorten(field, maxField), Rule: rule, Message: fmt.Sprintf(format, args...)})
	}
}

// limit shortens the list to maxViolations. omitted is the number of violations that the caller did not add to the list. If limit
// removes violations or omitted is positive, it adds a violation that states how many are missing in total.
func (v *Violations) limit(omitted int) {
	if more := len(*v) - maxViolations; more > 0 {
		*v, omitted = (*v)[:maxViolations:maxViolations], omitted+more
	}

	v.require(omitted == 0, "", ruleMore, "and %d more", omitted)
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
		case one.Rule == ruleCreateOnly, one.Rule == ruleUpdateOnly: // the field is the subject of the message
			lines = append(lines, one.Field+" "+one.Message)
		default:
			lines = append(lines, one.Field+": "+one.Message)
		}
	}

	return failure.New(failure.Invalid, "parameters: %s", strings.Join(lines, "; "))
}

// violationsOf converts the error of a schema check. It sorts the violations by field, because the library returns
// them in random order. For an unknown parameter, it suggests a similar name from the schema.
func (f form) violationsOf(invalid *jsonschema.ValidationError) Violations {
	var (
		broken     []brokenRule
		violations Violations
	)

	collect(invalid, &broken)
	slices.SortStableFunc(broken, func(a, b brokenRule) int { return strings.Compare(a.field, b.field) })

	for _, one := range broken[:min(len(broken), maxViolations)] {
		switch path := strings.Split(one.field, "."); {
		case one.kind != nil:
			violations.require(false, one.field, strings.Join(one.kind.KeywordPath(), "."), "%s", ruleText(one.kind))
		case slices.Contains(f.updateOnly, one.field):
			violations.require(false, one.field, ruleUpdateOnly, "can only be set in an update")
		default:
			violations.require(false, one.field, ruleUnknown, "the plan has no such parameter%s",
				failure.Suggestion(path[len(path)-1], namesAt(f.schema, path[:len(path)-1])))
		}
	}

	violations.limit(max(0, len(broken)-maxViolations))

	return violations
}

// namesAt returns the names of the parameters in the object at the path. If the path leads through a list, it returns no names.
func namesAt(schema map[string]any, path []string) []string {
	for _, name := range path {
		properties, _ := schema["properties"].(map[string]any)
		schema, _ = properties[name].(map[string]any)
	}

	properties, _ := schema["properties"].(map[string]any)

	return slices.Sorted(maps.Keys(properties))
}

// brokenRule is a leaf in the error tree of a schema check. The kind is nil for an unknown parameter.
type brokenRule struct {
	field string
	kind  jsonschema.ErrorKind
}

// collect walks a tree of validation errors and adds each leaf. The inner nodes only group errors.
func collect(invalid *jsonschema.ValidationError, found *[]brokenRule) {
	for _, cause := range invalid.Causes {
		collect(cause, found)
	}

	if len(invalid.Causes) > 0 {
		return
	}

	field := strings.Join(invalid.InstanceLocation, ".")

	if unknown, ok := invalid.ErrorKind.(*kind.AdditionalProperties); ok {
		for _, name := range unknown.Properties {
			*found = append(*found, brokenRule{field: strings.TrimPrefix(field+"."+name, ".")})
		}

		return
	}

	*found = append(*found, brokenRule{field, invalid.ErrorKind})
}
