package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// TokenOperation is the name that requests for tokens have in faults and calls.
const TokenOperation = "token"

// tokenLifetime is the value of expires_in in token responses, in seconds. Tokens do not actually expire; see ExpireTokens.
const tokenLifetime = 3600

// Tokens returns the handler of the token endpoint. Clients authenticate with HTTP basic authentication; check reports whether
// the credentials and the form in the request are right.
func (b *Base) Tokens(check func(user, password string, r *http.Request) bool) http.HandlerFunc {
	return b.Handle(TokenOperation, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.ParseForm() != nil || !check(user, password, r) {
			WriteJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})

			return
		}

		b.issued++
		token := fmt.Sprintf("%s-token-%d", b.name, b.issued)
		b.tokens[token] = true

		WriteJSON(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "bearer", "expires_in": tokenLifetime})
	})
}

// ExpireTokens invalidates all tokens that have been issued. Calls with such a token get 401.
func (b *Base) ExpireTokens() {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	clear(b.tokens)
}

// Protected is like Handle, but requires a token that Tokens has issued.
func (b *Base) Protected(operation string, execute http.HandlerFunc) http.HandlerFunc {
	return b.Handle(operation, func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !b.tokens[token] {
			WriteJSON(w, http.StatusUnauthorized, map[string]string{"message": "the token is invalid or expired"})

			return
		}

		execute(w, r)
	})
}

// WriteJSON writes a response. A value of nil leaves the body empty.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	if value == nil {
		w.WriteHeader(status)

		return
	}

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) //nolint:errchkjson // an error means that the client has disconnected
}
