package validation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// maxProblems is how many problems one error tells; the rest is only counted.
const maxProblems = 10

// problems collects what is wrong, each with the field that it is about.
type problems struct {
	// what begins the text that tells them.
	what string
	told []string
}

func (p *problems) add(field, format string, args ...any) {
	p.told = append(p.told, field+" "+fmt.Sprintf(format, args...))
}

// err returns all problems as one error, nil when there are none.
func (p *problems) err() error {
	told := p.told
	if len(told) == 0 {
		return nil
	}

	if more := len(told) - maxProblems; more > 0 {
		told = append(told[:maxProblems:maxProblems], fmt.Sprintf("and %d problems more", more))
	}

	return failure.New(failure.Invalid, "%s: %s", p.what, strings.Join(told, "; "))
}

// present finds a text that is empty.
func (p *problems) present(field, value string) {
	if value == "" {
		p.add(field, "must not be empty")
	}
}

// oneOf finds a text that is given and not one of those allowed.
func (p *problems) oneOf(field string, value *string, allowed ...string) {
	if value == nil || *value == "" {
		return
	}

	if slices.Contains(allowed, *value) {
		return
	}

	p.add(field, "must be one of %s, not %q", strings.Join(allowed, ", "), *value)
}

// unique finds names that are empty or occur more than once.
func (p *problems) unique(field string, names []string) {
	seen := make(map[string]bool, len(names))

	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", field, i)
		p.present(at, name)

		if name != "" && seen[name] {
			p.add(at, "repeats %q", name)
		}

		seen[name] = true
	}
}
