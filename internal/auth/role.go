package auth

import (
	"fmt"
	"slices"
)

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

func parseRole(text string) (Role, error) {
	role := Role(text)
	if !slices.Contains([]Role{RoleOSB, RoleViewer, RoleOperator, RoleAdmin}, role) {
		// Its text is not repeated: where a password holds a colon it is part of that.
		return "", fmt.Errorf("its role is not known: use %s, %s, %s or %s, and write `,:+%%` in a name or a password percent-encoded",
			RoleOSB, RoleViewer, RoleOperator, RoleAdmin)
	}

	return role, nil
}

// Identity is who makes a request.
type Identity struct {
	Name  string
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
