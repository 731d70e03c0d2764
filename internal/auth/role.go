package auth

import "slices"

// Role is a right that a user has.
type Role string

// The roles. RoleOSB is for platforms, the others are for people and tools: an admin is an operator, an operator a viewer.
const (
	RoleOSB      Role = "osb"
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)

// implied lists what a role brings besides itself.
func implied(role Role) []Role {
	switch role {
	case RoleAdmin:
		return []Role{RoleOperator, RoleViewer}
	case RoleOperator:
		return []Role{RoleViewer}
	case RoleOSB, RoleViewer:
	}

	return nil
}

// knownRoles are all roles, for people.
const knownRoles = "osb, viewer, operator or admin"

func (r Role) known() bool {
	return slices.Contains([]Role{RoleOSB, RoleViewer, RoleOperator, RoleAdmin}, r)
}

// Means is the kind of credentials by which somebody is known.
type Means string

// The means. Names of one have nothing to do with the same names of another.
const (
	ByPassword    Means = "password"
	ByToken       Means = "token"
	ByCertificate Means = "certificate"
)

// Identity is who makes a request.
type Identity struct {
	Name  string
	Means Means
	Roles []Role
}

// Has reports whether the identity has one of the roles, also by a role that implies it.
func (i Identity) Has(roles ...Role) bool {
	for _, role := range i.Roles {
		if slices.Contains(roles, role) {
			return true
		}

		for _, brought := range implied(role) {
			if slices.Contains(roles, brought) {
				return true
			}
		}
	}

	return false
}
