package audit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"unicode"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// OriginatingIdentity is the header in which a platform names the user behind a request, as the Open Service Broker API defines it.
const OriginatingIdentity = "X-Broker-API-Originating-Identity"

// maxText bounds the texts that entries keep of a request, in characters.
const maxText = 255

type actorKey struct{}

// ActorOf returns who makes the request of the context; outside of a request, an Actor without fields.
func ActorOf(ctx context.Context) auditlog.Actor {
	actor, _ := ctx.Value(actorKey{}).(auditlog.Actor)
	identity := auth.FromContext(ctx)
	actor.User, actor.Means = identity.Name, string(identity.Means)

	return actor
}

// Introduce is a middleware that puts the origin of a request into its context, for ActorOf.
func Introduce(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor := auditlog.Actor{RequestID: oneLine(r.Header.Get(httpserver.RequestIdentity)), Address: r.RemoteAddr}
		actor.Platform, actor.Originator = originator(r.Header.Get(OriginatingIdentity))

		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			actor.Address = host
		}

		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
	})
}

// originator parses the header: the name of a platform and the base64 of a JSON object whose fields the platform defines. An invalid header
// counts as absent, because it is no reason to reject a request. Of the object only the user is kept: the rest may hold anything.
func originator(header string) (platform, user string) {
	platform, encoded, _ := strings.Cut(header, " ")

	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return "", ""
	}

	var fields map[string]any
	if err := json.Unmarshal(decoded, &fields); err != nil || fields == nil {
		return "", ""
	}

	for _, field := range []string{"user_id", "username", "user_name", "email", "uid"} {
		if user, ok := fields[field].(string); ok && user != "" {
			return oneLine(platform), oneLine(user)
		}
	}

	return oneLine(platform), ""
}

// oneLine returns at most maxText characters of the text, with spaces in place of line breaks and of characters that terminals interpret
// or do not show.
func oneLine(text string) string {
	letters := []rune(strings.Join(strings.FieldsFunc(text, func(char rune) bool {
		return unicode.IsSpace(char) || !unicode.IsGraphic(char) || char == unicode.ReplacementChar
	}), " "))

	return string(letters[:min(len(letters), maxText)])
}
