package auth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Rule gives a role to everybody of whom an attribute has the value: a claim of a token, or a part of a certificate's name.
type Rule struct {
	Role             Role
	Attribute, Value string
}

// Rules are who gets which role.
type Rules []Rule

// ParseRules reads `role=attribute:value`, comma-separated. The value is all behind the first colon; a comma or a percent sign in it is
// written percent-encoded. Every error is reported at once.
func ParseRules(text string) (Rules, error) {
	var (
		rules Rules
		errs  []error
	)

	if strings.TrimSpace(text) == "" {
		return nil, nil
	}

	for i, entry := range strings.Split(text, ",") {
		rule, err := parseRule(strings.TrimSpace(entry))
		if err != nil {
			errs = append(errs, fmt.Errorf("rule %d: %w", i+1, err))

			continue
		}

		rules = append(rules, rule)
	}

	return rules, errors.Join(errs...)
}

func parseRule(entry string) (Rule, error) {
	name, condition, _ := strings.Cut(entry, "=")
	attribute, encoded, _ := strings.Cut(condition, ":")

	value, err := url.PathUnescape(encoded)

	switch {
	case err != nil:
		return Rule{}, errors.New("the percent-encoding of its value is broken")
	case attribute == "" || value == "":
		return Rule{}, errors.New("is not written as role=attribute:value")
	}

	role := Role(name)
	if !role.known() {
		return Rule{}, fmt.Errorf("the role %q is not known: use %s", name, knownRoles)
	}

	return Rule{Role: role, Attribute: attribute, Value: value}, nil
}

// roles returns the roles of somebody with the attributes.
func (r Rules) roles(attributes map[string][]string) []Role {
	var roles []Role

	for _, rule := range r {
		if slices.Contains(attributes[rule.Attribute], rule.Value) && !slices.Contains(roles, rule.Role) {
			roles = append(roles, rule.Role)
		}
	}

	return roles
}
