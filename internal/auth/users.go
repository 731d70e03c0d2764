package auth

import (
	"crypto/hmac"
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

// Users authenticates clients by HTTP Basic authentication. A user can have several passwords, so operators can rotate a password
// without downtime: add the new password, reconfigure the clients, then remove the old password.
type Users struct {
	entries []user
}

// user is a name with one password. It stores digests, so a comparison takes the same time for inputs of any length. The digests
// need no salt: they exist only in memory, and the configuration contains the passwords anyway.
type user struct {
	identity       Identity
	name, password [sha256.Size]byte
}

// ParseUsers parses comma-separated users of the form `user:password[:role+role]`. The characters `,:+%` in a name or password
// must be percent-encoded. A user without a role gets RoleOSB. The error lists the positions of all invalid entries and does not
// quote the entries, because they may contain passwords.
func ParseUsers(text secret.String) (Users, error) {
	if strings.TrimSpace(text.Reveal()) == "" {
		return Users{}, nil
	}

	return parseUsers("user", strings.Split(text.Reveal(), ","))
}

// ParseUserFile parses users in the form of ParseUsers, one per line. It skips empty lines and lines that start with #. A file
// without users is an error: an editor may have truncated the file before writing it, and an empty list would lock out all users.
func ParseUserFile(content []byte) (Users, error) {
	users, err := parseUsers("line", strings.Split(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n"))
	if err == nil && users.None() {
		err = errors.New("the file has no users")
	}

	return users, err
}

// parseUsers parses one user per entry. Errors identify an entry by place and number, such as "line 3".
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

// add adds a user, or another password for a user in the list. All passwords of a user must have the same roles. Otherwise, a
// client's rights would depend on which of the passwords it uses.
func (u *Users) add(added user) error {
	for _, entry := range u.entries {
		switch {
		case entry.name != added.name:
		case entry.password == added.password:
			return errors.New("the same user and password are listed twice")
		case !sameRoles(entry.identity, added.identity):
			return errors.New("an earlier entry for the user has different roles; all passwords of a user must have the same roles")
		}
	}

	u.entries = append(u.entries, added)

	return nil
}

// sameRoles reports whether both identities have the same roles, in any order.
func sameRoles(one, other Identity) bool {
	within := func(some, all []Role) bool {
		return !slices.ContainsFunc(some, func(role Role) bool { return !slices.Contains(all, role) })
	}

	return within(one.Roles, other.Roles) && within(other.Roles, one.Roles)
}

// And returns the users of both lists. A name in both lists is one user with several passwords.
func (u Users) And(others Users) (Users, error) {
	both := Users{entries: slices.Clone(u.entries)}

	for _, other := range others.entries {
		if err := both.add(other); err != nil {
			return Users{}, fmt.Errorf("the user %q: %w", other.identity.Name, err)
		}
	}

	return both, nil
}

// parseUser parses one entry. Its errors never quote the entry.
func parseUser(entry string) (user, error) {
	const most = 3

	parts := strings.Split(entry, ":")
	if len(parts) < 2 || len(parts) > most {
		return user{}, errors.New("it must have the form user:password[:role+role]")
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
			if !role.valid() {
				// The error does not quote the unknown role: it may be the end of a password that contains a colon.
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

// None reports whether the list has no users.
func (u Users) None() bool { return len(u.entries) == 0 }

// Find returns the user with the given name and password, or false if there is none. It compares the input with every user in
// constant time, so its duration reveals neither which names exist nor which part of a password is correct.
func (u Users) Find(name, password string) (Identity, bool) {
	var (
		found        Identity
		matched      bool
		sentName     = sha256.Sum256([]byte(name))
		sentPassword = sha256.Sum256([]byte(password))
	)

	for _, user := range u.entries {
		match := subtle.ConstantTimeCompare(user.name[:], sentName[:]) &
			subtle.ConstantTimeCompare(user.password[:], sentPassword[:])
		if match == 1 {
			found, matched = user.identity, true
		}
	}

	return found, matched
}

// Proof returns a value that depends on the password of a user and on the session. A session stores it instead of the password,
// so that Proven can report whether the password is still valid. Proof does not check the password.
func Proof(password, session string) []byte {
	digest := sha256.Sum256([]byte(password))

	return proof(digest, session)
}

func proof(password [sha256.Size]byte, session string) []byte {
	mac := hmac.New(sha256.New, password[:])
	_, _ = mac.Write([]byte(session)) // never fails

	return mac.Sum(nil)
}

// Proven returns the user with the given name if one of the user's passwords matches the session's proof. It returns false if the
// user or the password has been removed since Proof was called.
func (u Users) Proven(name, session string, given []byte) (Identity, bool) {
	for _, user := range u.entries {
		if user.identity.Name == name && hmac.Equal(proof(user.password, session), given) {
			return user.identity, true
		}
	}

	return Identity{}, false
}

// Authenticate implements Authenticator.
func (u Users) Authenticate(r *http.Request) (Identity, error) {
	name, password, sent := r.BasicAuth()
	if !sent {
		return Identity{}, ErrNoCredentials
	}

	identity, matched := u.Find(name, password)
	if !matched {
		return Identity{}, reject(textWrongPassword)
	}

	return identity, nil
}

// Challenge implements Authenticator.
func (Users) Challenge() string { return `Basic realm="environment broker", charset="UTF-8"` }

// ReloadedUsers is an Authenticator for a list of users that can be reloaded while the service runs. Calling it returns the
// current list.
type ReloadedUsers func() Users

// Authenticate implements Authenticator.
func (c ReloadedUsers) Authenticate(r *http.Request) (Identity, error) { return c().Authenticate(r) }

// Challenge implements Authenticator.
func (c ReloadedUsers) Challenge() string { return Users{}.Challenge() }
