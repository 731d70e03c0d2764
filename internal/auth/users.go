package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Users are those who may come in. The zero value has none: then nobody is asked, and everybody may do everything. A service
// allows that on the loopback only (CheckExposure).
type Users struct {
	known []user
}

// user keeps digests only, so that comparing takes the same time whatever the length of what was sent.
type user struct {
	identity       Identity
	name, password [sha256.Size]byte
}

// ParseUsers reads `user:password[:role+role]`, comma-separated, each part percent-encoded where it holds one of `,:+%`. Without a
// role a user has RoleOSB. Every error is reported at once, by the place of the entry: nothing of its text is repeated.
func ParseUsers(text secret.String) (Users, error) {
	var (
		users Users
		errs  []error
	)

	if strings.TrimSpace(text.Reveal()) == "" {
		return users, nil
	}

	names := map[string]bool{}

	for i, entry := range strings.Split(text.Reveal(), ",") {
		user, err := parseUser(strings.TrimSpace(entry))
		if err == nil && names[user.identity.Name] {
			err = errors.New("a user before it has the same name")
		}

		if err != nil {
			errs = append(errs, fmt.Errorf("user %d: %w", i+1, err))

			continue
		}

		names[user.identity.Name] = true
		users.known = append(users.known, user)
	}

	return users, errors.Join(errs...)
}

func parseUser(entry string) (user, error) {
	const most = 3

	parts := strings.Split(entry, ":")
	if len(parts) < 2 || len(parts) > most {
		return user{}, errors.New("is not written as user:password[:role+role]")
	}

	name, nameErr := url.PathUnescape(parts[0])
	password, passwordErr := url.PathUnescape(parts[1])

	switch {
	case nameErr != nil || passwordErr != nil:
		return user{}, errors.New("the percent-encoding of name or password is broken")
	case name == "" || password == "":
		return user{}, errors.New("name or password is empty")
	case strings.Contains(name, ":"):
		return user{}, errors.New("a name with a colon cannot be sent")
	}

	roles := []Role{RoleOSB}

	if len(parts) == most {
		roles = roles[:0]

		for text := range strings.SplitSeq(parts[2], "+") {
			role, err := parseRole(text)
			if err != nil {
				return user{}, err
			}

			roles = append(roles, role)
		}
	}

	return user{
		identity: Identity{Name: name, Roles: roles},
		name:     sha256.Sum256([]byte(name)),
		password: sha256.Sum256([]byte(password)),
	}, nil
}

// None reports whether no user is known, so that nobody is asked.
func (u Users) None() bool { return len(u.known) == 0 }

// Authenticate returns the user with the name and the password. It takes the same time for every failure.
func (u Users) Authenticate(name, password string) (Identity, bool) {
	var (
		found        Identity
		known        bool
		sentName     = sha256.Sum256([]byte(name))
		sentPassword = sha256.Sum256([]byte(password))
	)

	for _, user := range u.known {
		match := subtle.ConstantTimeCompare(user.name[:], sentName[:]) &
			subtle.ConstantTimeCompare(user.password[:], sentPassword[:])
		if match == 1 {
			found, known = user.identity, true
		}
	}

	return found, known
}
