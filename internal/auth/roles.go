package auth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Role is a permission of a client.
type Role string

// The roles. RoleOSB is for platforms, the others are for people and tools: an admin has the rights of an operator, an operator those of a
// viewer.
const (
	RoleOSB      Role = "osb"
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)

// knownRoles lists all roles for error texts.
const knownRoles = "osb, viewer, operator or admin"

func (r Role) known() bool {
	return slices.Contains([]Role{RoleOSB, RoleViewer, RoleOperator, RoleAdmin}, r)
}

// withImplied returns the role and those that it includes.
func (r Role) withImplied() []Role {
	switch r {
	case RoleAdmin:
		return []Role{RoleAdmin, RoleOperator, RoleViewer}
	case RoleOperator:
		return []Role{RoleOperator, RoleViewer}
	case RoleOSB, RoleViewer:
	}

	return []Role{r}
}

// Means is a kind of credentials.
type Means string

// The kinds of credentials. The same name under two kinds means two clients.
const (
	ByPassword    Means = "password"
	ByToken       Means = "token"
	ByCertificate Means = "certificate"
)

// Identity is an authenticated client.
type Identity struct {
	Name  string
	Means Means
	Roles []Role
}

// Has reports whether the identity has one of the roles, directly or through a role that includes it.
func (i Identity) Has(roles ...Role) bool {
	return slices.ContainsFunc(i.Roles, func(own Role) bool {
		return slices.ContainsFunc(own.withImplied(), func(role Role) bool { return slices.Contains(roles, role) })
	})
}

// Rule grants a role when an attribute matches: a claim of a token, or a part of a certificate.
type Rule struct {
	Role             Role
	Attribute, Value string
}

// Rules grant roles to clients without a list of users.
type Rules []Rule

// ParseRules parses `role=attribute:value`, comma-separated. The value is everything after the first colon; commas and percent signs in it
// are percent-encoded. The error lists all invalid rules.
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
		return Rule{}, errors.New("the percent-encoding of the value is invalid")
	case attribute == "" || value == "":
		return Rule{}, errors.New("the form is role=attribute:value")
	}

	role := Role(name)
	if !role.known() {
		return Rule{}, fmt.Errorf("the role %q is unknown: use %s", name, knownRoles)
	}

	return Rule{Role: role, Attribute: attribute, Value: value}, nil
}

// roles returns the roles granted to a client with the attributes.
func (r Rules) roles(attributes map[string][]string) []Role {
	var roles []Role

	for _, rule := range r {
		if slices.Contains(attributes[rule.Attribute], rule.Value) && !slices.Contains(roles, rule.Role) {
			roles = append(roles, rule.Role)
		}
	}

	return roles
}
