package session

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// maxCookie is the maximum length of a cookie's value in bytes. Browsers accept at least 4096 bytes for name, value and attributes.
const maxCookie = 3800

// cookie is a kind of cookie with an encrypted value.
type cookie struct {
	// name is the name without the __Host- prefix. The encryption includes the name, so a cookie of one kind cannot be used as
	// another.
	name string
	keys *secret.Keyring
}

// nameFor returns the name of the cookie. Over TLS, the name has the __Host- prefix. Browsers then accept the cookie only from this
// host and only over TLS, and not from a subdomain.
func (c cookie) nameFor(secure bool) string {
	if secure {
		return "__Host-" + c.name
	}

	return c.name
}

// set seals the value and adds the cookie to the response.
func (c cookie) set(w http.ResponseWriter, secure bool, value any, lifetime time.Duration) error {
	plain, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding a cookie: %w", err)
	}

	// The ID of a key may contain characters that are not allowed in cookies.
	key, sealed, _ := strings.Cut(c.keys.Seal(plain, c.place()), ":")

	text := url.QueryEscape(key) + ":" + sealed
	if len(text) > maxCookie {
		return fmt.Errorf("the %s cookie would have %d bytes, but the limit is %d", c.name, len(text), maxCookie)
	}

	c.write(w, secure, text, int(lifetime/time.Second))

	return nil
}

// get decrypts the value of the cookie. It returns false if the request has no such cookie, or if none of the keys decrypts it.
func (c cookie) get(r *http.Request, secure bool, into any) bool {
	sent, err := r.Cookie(c.nameFor(secure))
	if err != nil || len(sent.Value) > maxCookie {
		return false
	}

	escaped, sealed, _ := strings.Cut(sent.Value, ":")

	key, err := url.QueryUnescape(escaped)
	if err != nil {
		return false
	}

	plain, err := c.keys.Open(key+":"+sealed, c.place())

	return err == nil && json.Unmarshal(plain, into) == nil
}

// remove makes the browser delete the cookie.
func (c cookie) remove(w http.ResponseWriter, secure bool) { c.write(w, secure, "", -1) }

func (c cookie) place() string { return "cookie " + c.name }

func (c cookie) write(w http.ResponseWriter, secure bool, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // without TLS, browsers would not send a secure cookie
		Name: c.nameFor(secure), Value: value, Path: "/", MaxAge: maxAge, Secure: secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}
