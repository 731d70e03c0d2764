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

// OriginatingIdentity is the header in which a platform names the user behind a request. The Open Service Broker API defines the
// header.
const OriginatingIdentity = "X-Broker-API-Originating-Identity"

// maxText is the maximum length, in characters, of strings that are copied from requests into audit entries. The limit is needed
// because clients choose these strings.
const maxText = 255

type (
	originKey  struct{}
	accountKey struct{}
)

// ActorOf returns the user behind the request to which ctx belongs: the authenticated client, the user that the platform names,
// if any, and the network address. Outside of a request, ActorOf returns the zero Actor, which stands for the service itself.
func ActorOf(ctx context.Context) auditlog.Actor {
	identity := auth.FromContext(ctx)
	actor := auditlog.Actor{User: identity.Name, Means: string(identity.Means)}

	origin, within := ctx.Value(originKey{}).(origin)
	if !within {
		return actor
	}

	actor.RequestID, actor.Address = oneLine(origin.header.Get(httpserver.RequestIdentity)), origin.address
	actor.Platform, actor.Originator = originator(origin.header.Get(OriginatingIdentity))

	if host, _, err := net.SplitHostPort(origin.address); err == nil {
		actor.Address = host
	}

	return actor
}

// origin is the part of a request that identifies the user behind it. It is stored unparsed, because most requests need no audit
// entry; ActorOf parses it.
type origin struct {
	header  http.Header
	address string
}

// Introduce is a middleware that stores the origin of a request in its context, for ActorOf. The Authorizer adds the identity of
// the client later.
func Introduce(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), originKey{}, origin{r.Header, r.RemoteAddr})))
	})
}

// NoteAccount sets the ID of the account that a request concerns. If the request is rejected, its audit entry contains this ID.
// For an unknown instance, nothing else identifies the account whose data the entry contains.
func NoteAccount(ctx context.Context, account string) {
	if noted, ok := ctx.Value(accountKey{}).(*string); ok {
		*noted = oneLine(account)
	}
}

// captureAccount returns a context for NoteAccount, and a pointer to the account that NoteAccount sets.
func captureAccount(ctx context.Context) (context.Context, *string) {
	account := new(string)

	return context.WithValue(ctx, accountKey{}, account), account
}

// originator parses the OriginatingIdentity header: the name of a platform, and a base64-encoded JSON object with fields that the
// platform defines. originator returns only the user from the object, because the other fields may contain personal data. Because
// the header is optional, originator treats an invalid header like a missing one.
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

// oneLine returns at most maxText characters of the text. It replaces line breaks, control characters and invisible characters
// with spaces, so an entry can neither forge log lines nor hide text.
func oneLine(text string) string {
	chars := []rune(strings.Join(strings.FieldsFunc(text, func(char rune) bool {
		return unicode.IsSpace(char) || !unicode.IsGraphic(char) || char == unicode.ReplacementChar
	}), " "))

	return string(chars[:min(len(chars), maxText)])
}
