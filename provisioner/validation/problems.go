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
	// within is the object of the request whose fields are looked at. The text leaves it out.
	within string
	told   []string
	paths  []string
}

func (p *problems) add(field, format string, args ...any) {
	p.told = append(p.told, field+" "+fmt.Sprintf(format, args...))
	p.paths = append(p.paths, p.path(field))
}

// path is where in the arguments of a mutation the field stands.
func (p *problems) path(field string) string {
	if part, _, _ := strings.Cut(field, "."); slices.Contains([]string{"awsConfig", "azureConfig", "gcpConfig", "openStackConfig"}, part) {
		field = "providerSpecificConfig." + field
	}

	return "config." + p.within + field
}

// err returns all problems as one error, nil when there are none.
func (p *problems) err() error {
	told, paths := p.told, p.paths
	if len(told) == 0 {
		return nil
	}

	if more := len(told) - maxProblems; more > 0 {
		told = append(told[:maxProblems:maxProblems], fmt.Sprintf("and %d problems more", more))
		paths = paths[:maxProblems]
	}

	return failure.New(failure.Invalid, "%s: %s", p.what, strings.Join(told, "; ")).At(unrepeated(paths)...)
}

// unrepeated returns the paths in their order, each once.
func unrepeated(paths []string) []string {
	var once []string

	for _, path := range paths {
		if !slices.Contains(once, path) {
			once = append(once, path)
		}
	}

	return once
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
