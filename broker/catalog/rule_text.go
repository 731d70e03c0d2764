package catalog

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// namePattern equals the pattern of the name parameter in parameters.yaml.
const namePattern = "^[a-zA-Z0-9-]*$"

// versionPattern equals the pattern of the kymaVersion parameter in parameters.yaml.
const versionPattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$"

// ruleText describes a broken rule to users, as a clause that follows the name of the parameter. It replaces the messages of the
// library, which contain schema keywords. Of the values in the request, it quotes only numbers, because strings may be secrets.
// Rules that do not occur in the catalog's schemas get the library's message.
func ruleText(rule jsonschema.ErrorKind) string {
	switch rule := rule.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, but is %s", withArticles(rule.Want...), withArticles(rule.Got))
	case *kind.Enum:
		return enumText(rule)
	case *kind.Required:
		return missingText(rule.Missing)
	case *kind.Minimum:
		return fmt.Sprintf("must be at least %s, but is %s", rule.Want.RatString(), rule.Got.RatString())
	case *kind.Maximum:
		return fmt.Sprintf("must be at most %s, but is %s", rule.Want.RatString(), rule.Got.RatString())
	case *kind.MinLength:
		return leastText(rule.Want, rule.Got, "character", "characters")
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s, but has %d", counted(rule.Want, "character", "characters"), rule.Got)
	case *kind.MinItems:
		return leastText(rule.Want, rule.Got, "entry", "entries")
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s, but has %d", counted(rule.Want, "entry", "entries"), rule.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("entries %d and %d are equal", rule.Duplicates[0]+1, rule.Duplicates[1]+1)
	case *kind.Pattern:
		if rule.Want == namePattern {
			return "may contain only letters, digits and dashes"
		}

		if rule.Want == versionPattern {
			return "may contain only letters, digits, dots, dashes and underscores, and must start with a letter or a digit"
		}
	}

	return rule.LocalizedString(message.NewPrinter(language.English))
}

// withArticles joins the names of JSON types, such as "an integer or null".
func withArticles(types ...string) string {
	named := make([]string, 0, len(types))

	for _, name := range types {
		switch name {
		case "null":
		case "array":
			name = "a list"
		case "integer", "object":
			name = "an " + name
		default:
			name = "a " + name
		}

		named = append(named, name)
	}

	return strings.Join(named, " or ")
}

// enumText lists the allowed values. A suggestion comes before the list, because platforms truncate long messages.
func enumText(rule *kind.Enum) string {
	values := make([]string, 0, len(rule.Want))
	for _, value := range rule.Want {
		values = append(values, fmt.Sprint(value))
	}

	list := strings.Join(values, ", ")

	given, _ := rule.Got.(string)
	if near := failure.Suggestion(given, values); near != "" {
		return "is not an available value" + near + " Available: " + list
	}

	return "must be one of " + list
}

// missingText names the missing parameters.
func missingText(names []string) string {
	if len(names) == 1 {
		return names[0] + " is missing"
	}

	last := len(names) - 1

	return strings.Join(names[:last], ", ") + " and " + names[last] + " are missing"
}

// leastText describes a string or list that is too short. one and many are the singular and plural of the unit.
func leastText(want, got int, one, many string) string {
	if got == 0 {
		return "must not be empty"
	}

	return fmt.Sprintf("must have at least %s, but has %d", counted(want, one, many), got)
}

// counted returns the number with its unit.
func counted(number int, one, many string) string {
	if number == 1 {
		return "1 " + one
	}

	return fmt.Sprintf("%d %s", number, many)
}
