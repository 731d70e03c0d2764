package broker

import (
	"net/http"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/rest"
)

// identify tells the log who makes the request, and on whose behalf. The platform that the header names may be another one than
// context.platform: platforms pass on each other's requests, and what is done for them does not depend on either.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor := audit.ActorOf(r.Context())
		rest.Note(r.Context(), logging.User, actor.User)

		if actor.Originator != "" {
			rest.Note(r.Context(), logging.Originator, actor.Originator)
		}

		next.ServeHTTP(w, r)
	})
}
