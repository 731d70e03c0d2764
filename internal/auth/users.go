package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Users authenticates clients by HTTP Basic authentication. A user may have several passwords, so that a password is replaced without an
// interruption: add the new one, then remove the old one.
type Users struct {
	known []user
}

// user keeps digests, so that a comparison takes the same time for inputs of any length.
type user struct {
	identity       Identity
	name, password [sha256.Size]byte
}

// ParseUsers parses `user:password[:role+role]`, comma-separated. Each part is percent-encoded if it contains one of `,:+%`. A user
// without a role gets RoleOSB. The error lists all invalid entries by their position and repeats nothing of their text.
func ParseUsers(text secret.String) (Users, error) {
	if strings.TrimSpace(text.Reveal()) == "" {
		return Users{}, nil
	}

	return parseUsers("user", strings.Split(text.Reveal(), ","))
}

// ParseUserFile parses users as ParseUsers does, one per line. It skips empty lines and lines that start with #. A file without users is an
// error: it may be half written, and would lock out all users.
func ParseUserFile(content []byte) (Users, error) {
	users, err := parseUsers("line", strings.Split(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n"))
	if err == nil && users.None() {
		err = errors.New("the file has no users")
	}

	return users, err
}

func parseUsers(place string, entries []string) (Users, error) {
	var (
		users Users
		errs  []error
	)

	for i, entry := range entries {
		entry = strings.TrimSpace(entry)
		if place == "line" && (entry == "" || strings.HasPrefix(entry, "#")) {
			continue
		}

		user, err := parseUser(entry)
		if err == nil {
			err = users.add(user)
		}

		if err != nil {
			errs = append(errs, fmt.Errorf("%s %d: %w", place, i+1, err))
		}
	}

	return users, errors.Join(errs...)
}

// add adds a user, or another password of a known one. All passwords of a user must have the same roles: the role of a client must not
// depend on which of them it uses during a rotation.
func (u *Users) add(added user) error {
	for _, known := range u.known {
		switch {
		case known.name != added.name:
		case known.password == added.password:
			return errors.New("the user and password are listed twice")
		case !sameRoles(known.identity, added.identity):
			return errors.New("the user is listed with other roles before: all passwords of a user have the same roles")
		}
	}

	u.known = append(u.known, added)

	return nil
}

func sameRoles(one, other Identity) bool {
	within := func(some, all []Role) bool {
		return !slices.ContainsFunc(some, func(role Role) bool { return !slices.Contains(all, role) })
	}

	return within(one.Roles, other.Roles) && within(other.Roles, one.Roles)
}

// And returns both lists together. A name in both is one user with several passwords.
func (u Users) And(others Users) (Users, error) {
	both := Users{known: slices.Clone(u.known)}

	for _, other := range others.known {
		if err := both.add(other); err != nil {
			return Users{}, fmt.Errorf("the user %q: %w", other.identity.Name, err)
		}
	}

	return both, nil
}

func parseUser(entry string) (user, error) {
	const most = 3

	parts := strings.Split(entry, ":")
	if len(parts) < 2 || len(parts) > most {
		return user{}, errors.New("the form is user:password[:role+role]")
	}

	name, nameErr := url.PathUnescape(parts[0])
	password, passwordErr := url.PathUnescape(parts[1])

	switch {
	case nameErr != nil || passwordErr != nil:
		return user{}, errors.New("the percent-encoding of the name or the password is invalid")
	case name == "" || password == "":
		return user{}, errors.New("the name or the password is empty")
	case strings.Contains(name, ":"):
		return user{}, errors.New("a name cannot contain a colon in HTTP Basic authentication")
	}

	roles := []Role{RoleOSB}

	if len(parts) == most {
		roles = roles[:0]

		for text := range strings.SplitSeq(parts[2], "+") {
			role := Role(text)
			if !role.known() {
				// The error does not repeat the text: it is part of a password that contains a colon.
				return user{}, errors.New("the role is unknown: use " + knownRoles +
					", and percent-encode `,:+%` in names and passwords")
			}

			roles = append(roles, role)
		}
	}

	return user{
		identity: Identity{Name: name, Means: ByPassword, Roles: roles},
		name:     sha256.Sum256([]byte(name)),
		password: sha256.Sum256([]byte(password)),
	}, nil
}

// None reports whether the list is empty, so that nobody can log in.
func (u Users) None() bool { return len(u.known) == 0 }

// Find returns the user with the name and the password. Every failure takes the same time.
func (u Users) Find(name, password string) (Identity, bool) {
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

// Authenticate implements Authenticator.
func (u Users) Authenticate(r *http.Request) (Identity, error) {
	name, password, sent := r.BasicAuth()
	if !sent {
		return Identity{}, ErrNoCredentials
	}

	identity, known := u.Find(name, password)
	if !known {
		return Identity{}, reject("The user or the password is wrong.")
	}

	return identity, nil
}

// Challenge implements Authenticator.
func (Users) Challenge() string { return `Basic realm="environment broker", charset="UTF-8"` }

// ReloadedUsers returns the present users of a file that is reloaded.
type ReloadedUsers func() Users

// Authenticate implements Authenticator.
func (c ReloadedUsers) Authenticate(r *http.Request) (Identity, error) { return c().Authenticate(r) }

// Challenge implements Authenticator.
func (c ReloadedUsers) Challenge() string { return Users{}.Challenge() }
