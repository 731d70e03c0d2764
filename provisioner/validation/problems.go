package validation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// maxProblems is the maximum number of problems in an error. The error gives only the number of further problems, because a
// generated request may have hundreds.
const maxProblems = 10

// maxQuoted is the maximum length, in characters, of a string from the request that a message quotes.
const maxQuoted = 100

// problems collects the problems of one request. Each rule is a method that takes the field and the value, and calls add if the
// value breaks the rule. The zero value has no problems.
type problems struct {
	// title is the start of the error message, for example "the order is invalid".
	title string
	// within is the path of the object under validation, with a trailing dot. Paths start with it, and messages omit it.
	within string
	// texts are the messages of the first maxProblems problems, and more is the number of further problems.
	texts []string
	more  int
	// paths are the distinct fields of the first maxProblems problems, for the client to highlight.
	paths []string
}

// add records a problem. The message consists of the field and the formatted text, for example "region must not be empty". The
// arguments must not contain values that may be secret, because clients and logs show the message.
func (p *problems) add(field, format string, args ...any) {
	if len(p.texts) < maxProblems {
		p.texts = append(p.texts, field+" "+fmt.Sprintf(format, shortened(format, args)...))
	} else {
		p.more++
	}

	if path := p.path(field); p.more == 0 && !slices.Contains(p.paths, path) {
		p.paths = append(p.paths, path)
	}
}

// shortened returns the arguments of a format string. It shortens long arguments for %q, because they come from clients.
func shortened(format string, args []any) []any {
	args = slices.Clone(args)

	for i, verb := range regexp.MustCompile(`%[a-z]`).FindAllString(format, len(args)) {
		if text, ok := args[i].(string); ok && verb == "%q" {
			args[i] = failure.Shorten(text, maxQuoted)
		}
	}

	return args
}

// addIf records a problem if the condition is true.
func (p *problems) addIf(condition bool, field, format string, args ...any) {
	if condition {
		p.add(field, format, args...)
	}
}

// path returns the path of the field in the arguments of the mutation. Fields of a provider's part, such as awsConfig.vpcCidr,
// are below providerSpecificConfig, which messages omit and path inserts.
func (p *problems) path(field string) string {
	part, _, _ := strings.Cut(field, ".")
	if slices.Contains([]string{"awsConfig", "azureConfig", "gcpConfig", "openStackConfig"}, part) {
		field = "providerSpecificConfig." + field
	}

	return "config." + p.within + field
}

// err returns one failure.Invalid for all problems, or nil if there are none. The error lists the first maxProblems and counts the
// others.
func (p *problems) err() error {
	texts := p.texts
	if len(texts) == 0 {
		return nil
	}

	if p.more > 0 {
		texts = append(slices.Clone(texts), "and "+english.Plural(p.more, "more problem", ""))
	}

	return failure.New(failure.Invalid, "%s: %s", p.title, strings.Join(texts, "; ")).At(p.paths...)
}

// present rejects an empty string.
func (p *problems) present(field, value string) {
	p.addIf(value == "", field, "must not be empty")
}

// isSet reports whether an optional string is neither nil nor empty. Kyma Provisioner also treats empty strings as omitted.
func isSet(text *string) bool {
	return text != nil && *text != ""
}

// oneOf rejects an optional string that is set but is not one of the allowed values.
func (p *problems) oneOf(field string, value *string, allowed ...string) {
	if isSet(value) && !slices.Contains(allowed, *value) {
		p.add(field, "must be one of %s, not %q", strings.Join(allowed, ", "), *value)
	}
}

// unique rejects empty and repeated names. In errors, the name at index i is the field fmt.Sprintf(format, i), such as
// "zones[0]".
func (p *problems) unique(format string, names []string) {
	seen := make(map[string]bool, len(names))

	for i, name := range names {
		at := fmt.Sprintf(format, i)
		p.present(at, name)

		p.addIf(name != "" && seen[name], at, "repeats %q", name)

		seen[name] = true
	}
}
