package broker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/rest"
)

const originatingIdentity = "X-Broker-API-Originating-Identity"

type originatorKey struct{}

// identify tells the log who makes the request, and on whose behalf.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		rest.Note(ctx, logging.User, auth.FromContext(ctx).Name)

		if user := originator(r.Header.Get(originatingIdentity)); user != "" {
			rest.Note(ctx, logging.Originator, user)
			ctx = context.WithValue(ctx, originatorKey{}, user)
		}

		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// originatorOf returns the platform's user who caused the request, or an empty text.
func originatorOf(ctx context.Context) string {
	user, _ := ctx.Value(originatorKey{}).(string)

	return user
}

// originator reads the user out of the header: the name of a platform and the base64 of a JSON object, whose fields are the
// platform's own. What cannot be read counts as absent; the header is no reason to refuse a request.
func originator(header string) string {
	_, encoded, _ := strings.Cut(header, " ")

	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return ""
	}

	var fields map[string]any
	if err := json.Unmarshal(decoded, &fields); err != nil {
		return ""
	}

	for _, field := range []string{"user_id", "username", "user_name", "email", "uid"} {
		if user, ok := fields[field].(string); ok && user != "" {
			return user
		}
	}

	return ""
}
