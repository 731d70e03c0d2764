// Package labels checks the labels of instances and parses the selectors that select instances by label.
package labels

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Max is the maximum number of labels that an instance can have, and of conditions in a selector.
const Max = 20

// longestName is the maximum length of a label name, including the prefix and the slash.
const longestName = validation.DNS1123SubdomainMaxLength + len("/") + validation.LabelValueMaxLength

// Check returns an error of kind invalid unless the name and the value have the syntax of Kubernetes labels. The value may be empty.
func Check(name, value string) error {
	if len(name) > longestName || len(value) > validation.LabelValueMaxLength {
		return failure.New(failure.Invalid, "the name or the value of a label is too long: a name has at most %d characters, and a value at most %d",
			longestName, validation.LabelValueMaxLength)
	}

	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return failure.New(failure.Invalid, "the label name %q is invalid: %s", name, problems[0])
	}

	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return failure.New(failure.Invalid, "the value %q of the label %s is invalid: %s", value, name, problems[0])
	}

	return nil
}

// Condition selects instances that have the label Name, either with any value or only with the given one.
type Condition struct {
	Name string
	// Value is compared only if Exact is true.
	Value string
	Exact bool
}

// Matches reports whether the labels meet the condition.
func (c Condition) Matches(labels map[string]string) bool {
	value, found := labels[c.Name]

	return found && (!c.Exact || value == c.Value)
}

// Parse parses a selector such as ring=canary,team: conditions that are separated by commas and must all hold. If the text is
// empty, Parse returns no conditions. The error is of kind invalid.
func Parse(text string) ([]Condition, error) {
	if text == "" {
		return nil, nil
	}

	var conditions []Condition

	for part := range strings.SplitSeq(text, ",") {
		name, value, exact := strings.Cut(part, "=")
		if err := Check(name, value); err != nil {
			return nil, err
		}

		if conditions = append(conditions, Condition{name, value, exact}); len(conditions) > Max {
			return nil, failure.New(failure.Invalid, "the label selector has more than %d conditions", Max)
		}
	}

	return conditions, nil
}
