package auth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Role is a set of permissions that a client can have. Endpoints declare the roles that may call them.
type Role string

// The roles. RoleOSB is for platforms and permits only the Open Service Broker API. The other roles are for people and tools: an
// admin has all rights of an operator, and an operator has all rights of a viewer. When you add a role, also add it to valid and
// withImplied.
const (
	RoleOSB      Role = "osb"
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)

// knownRoles lists all roles for error messages.
const knownRoles = "osb, viewer, operator or admin"

// valid reports whether the role exists.
func (r Role) valid() bool {
	return slices.Contains([]Role{RoleOSB, RoleViewer, RoleOperator, RoleAdmin}, r)
}

// withImplied returns the role and all roles that it includes.
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

// Means is a kind of credentials: the means by which a client authenticates.
type Means string

// The kinds of credentials. Two clients with the same name but different kinds of credentials are different clients.
const (
	ByPassword    Means = "password"
	ByToken       Means = "token"
	ByCertificate Means = "certificate"
)

// Identity is an authenticated client. Name and Means together identify the client; both are empty if the service has no authentication.
type Identity struct {
	Name  string
	Means Means
	Roles []Role
	// Attributes are the claims of the token or the attributes of the certificate, keyed by name. They determine the client's
	// platform.
	Attributes map[string][]string
}

// Has reports whether the identity has at least one of the roles, directly or through a role that includes it.
func (i Identity) Has(roles ...Role) bool {
	return slices.ContainsFunc(i.Roles, func(own Role) bool {
		return slices.ContainsFunc(own.withImplied(), func(role Role) bool { return slices.Contains(roles, role) })
	})
}

// Rule grants a role to every client that has the given value for the given attribute. Attributes are claims of a token or parts
// of a certificate.
type Rule struct {
	Role             Role
	Attribute, Value string
}

// Rules grant roles to clients by their attributes. A client gets the roles of all rules that match.
type Rules []Rule

// ParseRules parses comma-separated rules of the form `role=attribute:value`. The value is everything after the first colon;
// commas and percent signs in a value must be percent-encoded. The error lists all invalid rules with their positions.
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
		return Rule{}, errors.New("it must have the form role=attribute:value")
	}

	role := Role(name)
	if !role.valid() {
		return Rule{}, fmt.Errorf("the role %q is unknown: use %s", name, knownRoles)
	}

	return Rule{Role: role, Attribute: attribute, Value: value}, nil
}

// roles returns the roles of a client with the given attributes, in the order of the rules and without duplicates.
func (r Rules) roles(attributes map[string][]string) []Role {
	var roles []Role

	for _, rule := range r {
		if slices.Contains(attributes[rule.Attribute], rule.Value) && !slices.Contains(roles, rule.Role) {
			roles = append(roles, rule.Role)
		}
	}

	return roles
}

// relevant returns only those attribute values that a rule matches, keyed by attribute. It returns nil if no rule matches.
func (r Rules) relevant(attributes map[string][]string) map[string][]string {
	var found map[string][]string

	for _, rule := range r {
		if !slices.Contains(attributes[rule.Attribute], rule.Value) || slices.Contains(found[rule.Attribute], rule.Value) {
			continue
		}

		if found == nil {
			found = map[string][]string{}
		}

		found[rule.Attribute] = append(found[rule.Attribute], rule.Value)
	}

	return found
}
