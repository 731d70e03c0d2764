package broker

import (
	"net/http"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// identify tells the log who makes the request, and on whose behalf. The platform that the header names may be another one than
// context.platform: platforms pass on each other's requests, and what is done for them does not depend on either.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor := audit.ActorOf(r.Context())
		httpserver.Note(r.Context(), logging.User, actor.User)

		if actor.Originator != "" {
			httpserver.Note(r.Context(), logging.Originator, actor.Originator)
		}

		next.ServeHTTP(w, r)
	})
}
