package audit

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"unicode"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// OriginatingIdentity is the header by which a platform tells for whom it makes a request.
const OriginatingIdentity = "X-Broker-API-Originating-Identity"

// longestText bounds what is kept of a header, in characters.
const longestText = 255

// Actor is who makes a request.
type Actor struct {
	// User is who was found out, Means how.
	User  string `json:"user,omitempty"`
	Means string `json:"means,omitempty"`
	// Platform and Originator are what the platform tells: its name, and its user.
	Platform   string `json:"platform,omitempty"`
	Originator string `json:"originator,omitempty"`
	// Address is where the connection comes from.
	Address string `json:"address,omitempty"`
	// RequestID is by what both sides know the request.
	RequestID string `json:"requestID,omitempty"`
}

// Name is on whose behalf the request is made: the platform's user, else who was found out.
func (a Actor) Name() string { return cmp.Or(a.Originator, a.User) }

type actorKey struct{}

// ActorOf returns who makes the request of the context. Outside of a request it is nobody.
func ActorOf(ctx context.Context) Actor {
	actor, _ := ctx.Value(actorKey{}).(Actor)

	return actor.known(auth.FromContext(ctx))
}

func (a Actor) known(identity auth.Identity) Actor {
	a.User, a.Means = identity.Name, string(identity.Means)

	return a
}

// Introduce is a middleware that lets ActorOf know what a request tells of its origin.
func Introduce(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor := Actor{RequestID: oneLine(r.Header.Get(httpserver.RequestIdentity)), Address: r.RemoteAddr}
		actor.Platform, actor.Originator = originator(r.Header.Get(OriginatingIdentity))

		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			actor.Address = host
		}

		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
	})
}

// originator reads the header: the name of a platform and the base64 of a JSON object, whose fields are the platform's own. What cannot
// be read counts as absent; the header is no reason to refuse a request. Of the object only the user is kept: the rest may hold anything.
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

// oneLine makes a text fit for a line: what no terminal shows becomes spaces, what is too long is cut.
func oneLine(text string) string {
	letters := []rune(strings.Join(strings.FieldsFunc(text, func(char rune) bool {
		return unicode.IsSpace(char) || !unicode.IsGraphic(char) || char == unicode.ReplacementChar
	}), " "))

	return string(letters[:min(len(letters), longestText)])
}
