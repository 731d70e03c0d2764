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

// Users are those who are known by a password. A user may have several, so that one can be exchanged for another: both are good
// until the old one is taken away.
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
	if strings.TrimSpace(text.Reveal()) == "" {
		return Users{}, nil
	}

	return parseUsers("user", strings.Split(text.Reveal(), ","))
}

// ParseUserFile reads users as ParseUsers does, one a line. Empty lines, and those that begin with #, do not count. A file without any
// user is an error: it may have been read while somebody writes it, and would lock everybody out.
func ParseUserFile(content []byte) (Users, error) {
	users, err := parseUsers("line", strings.Split(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n"))
	if err == nil && users.None() {
		err = errors.New("there is no user in it")
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

// add adds a user, or another password of one that is there.
func (u *Users) add(added user) error {
	for _, known := range u.known {
		switch {
		case known.name != added.name:
		case known.password == added.password:
			return errors.New("the same user with the same password stands before it")
		case !sameRoles(known.identity, added.identity):
			return errors.New("the same user stands before it with other roles: every password of a user has the same")
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

// And returns these users and others. Their names may meet, as passwords of the same user.
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
			role := Role(text)
			if !role.known() {
				// Its text is not repeated: where a password holds a colon it is part of that.
				return user{}, errors.New("its role is not known: use " + knownRoles +
					", and write `,:+%` in a name or a password percent-encoded")
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

// None reports whether no user is known.
func (u Users) None() bool { return len(u.known) == 0 }

// Find returns the user with the name and the password. It takes the same time for every failure.
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

// Authenticate implements Mechanism: HTTP Basic authentication.
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

// Challenge implements Mechanism.
func (Users) Challenge() string { return `Basic realm="environment broker", charset="UTF-8"` }

// Changing are users that may be others at every request: those of a file that is read anew.
type Changing func() Users

// Authenticate implements Mechanism.
func (c Changing) Authenticate(r *http.Request) (Identity, error) { return c().Authenticate(r) }

// Challenge implements Mechanism.
func (c Changing) Challenge() string { return Users{}.Challenge() }
