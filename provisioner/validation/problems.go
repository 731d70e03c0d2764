package validation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// maxProblems is the number of problems that one error lists; the others are counted.
const maxProblems = 10

// problems collects the problems of a request and the fields that they concern.
type problems struct {
	// title is the start of the error text.
	title string
	// within is the path of the object that is being validated. Messages omit it.
	within string
	texts  []string
	paths  []string
}

// add records a problem. The text starts with the field, so that a format reads as the rest of a sentence, and must not contain
// values that may be secret.
func (p *problems) add(field, format string, args ...any) {
	p.texts = append(p.texts, field+" "+fmt.Sprintf(format, args...))
	p.paths = append(p.paths, p.path(field))
}

// path returns the path of the field in the arguments of the mutation.
func (p *problems) path(field string) string {
	part, _, _ := strings.Cut(field, ".")
	if slices.Contains([]string{"awsConfig", "azureConfig", "gcpConfig", "openStackConfig"}, part) {
		field = "providerSpecificConfig." + field
	}

	return "config." + p.within + field
}

// err returns all problems as one failure.Invalid, or nil. The error lists at most maxProblems of them with their paths.
func (p *problems) err() error {
	texts, paths := p.texts, p.paths
	if len(texts) == 0 {
		return nil
	}

	if more := len(texts) - maxProblems; more > 0 {
		texts = append(texts[:maxProblems:maxProblems], fmt.Sprintf("and %d more problems", more))
		paths = paths[:maxProblems]
	}

	return failure.New(failure.Invalid, "%s: %s", p.title, strings.Join(texts, "; ")).At(unrepeated(paths)...)
}

// unrepeated returns the paths without duplicates.
func unrepeated(paths []string) []string {
	var once []string

	for _, path := range paths {
		if !slices.Contains(once, path) {
			once = append(once, path)
		}
	}

	return once
}

// present refuses an empty text.
func (p *problems) present(field, value string) {
	if value == "" {
		p.add(field, "must not be empty")
	}
}

// oneOf refuses a text that is set to anything but the allowed ones.
func (p *problems) oneOf(field string, value *string, allowed ...string) {
	if value == nil || *value == "" {
		return
	}

	if slices.Contains(allowed, *value) {
		return
	}

	p.add(field, "must be one of %s, not %q", strings.Join(allowed, ", "), *value)
}

// unique refuses empty and repeated names.
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
