package auth_test

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/auth"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func tokens(t *testing.T, issuer *issuer, change ...func(*auth.TokenOptions)) (*auth.Tokens, *clocktesting.FakeClock) {
	t.Helper()

	rules, err := auth.ParseRules("osb=scope:broker:write,viewer=groups:runtimeViewer,admin=groups:runtimeAdmin")
	if err != nil {
		t.Fatal(err)
	}

	clock := clocktesting.NewFakeClock(now)
	options := auth.TokenOptions{
		Issuer: issuer.URL, Audiences: []string{"other", audience}, Algorithms: []string{"ES256"}, Rules: rules, NameClaim: "sub",
		Client: issuer.Client(), Clock: clock,
	}

	for _, apply := range change {
		apply(&options)
	}

	made, err := auth.NewTokens(options)
	if err != nil {
		t.Fatal(err)
	}

	return made, clock
}

func authenticate(t *testing.T, authenticator auth.Authenticator, token string) (auth.Identity, error) {
	t.Helper()

	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	request.Header.Set("Authorization", "Bearer "+token)

	return authenticator.Authenticate(request)
}

func TestTokens(t *testing.T) {
	key, other := newKey(t, "k1"), newKey(t, "k1")
	issuer := newIssuer(t, key)
	authenticator, _ := tokens(t, issuer)

	// claims returns the claims of a valid token with some changes. The value nil removes a claim.
	claims := func(changes map[string]any) map[string]any {
		all := map[string]any{
			"iss": issuer.URL, "aud": audience, "sub": "alice", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "scope": "openid broker:write",
		}
		maps.Copy(all, changes)
		maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })

		return all
	}
	signed := func(changes map[string]any) string { return sign(t, jose.ES256, key, claims(changes)) }
	unsigned := func(header string) string {
		encode := base64.RawURLEncoding.EncodeToString

		return encode([]byte(header)) + "." + strings.Split(signed(nil), ".")[1] + "."
	}

	cases := map[string]struct {
		reason        string
		token         string
		want          auth.Identity
		wantRejection string
	}{
		"Scope": {
			reason: "a scope in a string grants a role", token: signed(nil),
			want: auth.Identity{Name: "alice", Means: auth.ByToken, Roles: []auth.Role{auth.RoleOSB}},
		},
		"ScopeList": {
			reason: "some issuers send a list named scp", token: signed(map[string]any{"scope": nil, "scp": []string{"broker:write"}}),
			want: auth.Identity{Name: "alice", Means: auth.ByToken, Roles: []auth.Role{auth.RoleOSB}},
		},
		"Groups": {
			reason: "known groups grant roles, unknown groups none",
			token:  signed(map[string]any{"scope": nil, "groups": []any{"runtimeAdmin", "others", 7, "runtimeViewer"}}),
			want:   auth.Identity{Name: "alice", Means: auth.ByToken, Roles: []auth.Role{auth.RoleViewer, auth.RoleAdmin}},
		},
		"NoRole": {
			reason: "a client without a role is authenticated", token: signed(map[string]any{"scope": "openid"}),
			want: auth.Identity{Name: "alice", Means: auth.ByToken},
		},
		"AudienceList": {
			reason: "one of the token's audiences is accepted", token: signed(map[string]any{"aud": []string{"a", audience}}),
			want: auth.Identity{Name: "alice", Means: auth.ByToken, Roles: []auth.Role{auth.RoleOSB}},
		},
		"JustExpired": {
			reason: "clocks may differ", token: signed(map[string]any{"exp": now.Add(-30 * time.Second).Unix()}),
			want: auth.Identity{Name: "alice", Means: auth.ByToken, Roles: []auth.Role{auth.RoleOSB}},
		},
		"Expired":       {reason: "a token expires", token: signed(map[string]any{"exp": now.Add(-2 * time.Minute).Unix()}), wantRejection: "expired"},
		"NoExpiry":      {reason: "a token without an expiry is rejected", token: signed(map[string]any{"exp": nil}), wantRejection: "expired"},
		"NotYet":        {reason: "a token may become valid later", token: signed(map[string]any{"nbf": now.Add(time.Hour).Unix()}), wantRejection: "not valid yet"},
		"OtherIssuer":   {reason: "a token of a different issuer is rejected", token: signed(map[string]any{"iss": "https://evil.example.com"}), wantRejection: "from a different issuer"},
		"OtherAudience": {reason: "a token for another service is rejected", token: signed(map[string]any{"aud": "somebody"}), wantRejection: "audience"},
		"NoAudience":    {reason: "a token without an audience is rejected", token: signed(map[string]any{"aud": nil}), wantRejection: "audience"},
		"NoName":        {reason: "the audit log needs a name", token: signed(map[string]any{"sub": nil}), wantRejection: `no "sub" claim`},
		"OtherKey":      {reason: "a known key ID does not make a signature valid", token: sign(t, jose.ES256, other, claims(nil)), wantRejection: "from a different issuer"},
		"NoAlgorithm":   {reason: "an unsigned token is rejected", token: unsigned(`{"alg":"none"}`), wantRejection: "no valid signature"},
		"Symmetric":     {reason: "a public key is not a shared secret", token: sign(t, jose.HS256, []byte(strings.Repeat("k", 64)), claims(nil)), wantRejection: "no valid signature"},
		"Rubbish":       {reason: "rubbish is rejected", token: "rubbish", wantRejection: "no valid signature"},
		"Empty":         {reason: "an empty token is rejected", token: "", wantRejection: "no valid signature"},
		"TooLong":       {reason: "the length of tokens is bounded", token: signed(map[string]any{"x": strings.Repeat("x", 20_000)}), wantRejection: "longer"},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := authenticate(t, authenticator, test.token)

			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(auth.Identity{}, "Attributes")); diff != "" {
				t.Errorf("\n%s\nidentity: -want +got\n%s", test.reason, diff)
			}

			rejection, rejected := errors.AsType[*auth.Rejection](err)
			if rejected != (test.wantRejection != "") || rejected && !strings.Contains(rejection.Why, test.wantRejection) {
				t.Errorf("\n%s\nwant a rejection with %q, got %v", test.reason, test.wantRejection, err)
			}

			if rejected && strings.Contains(rejection.Why, "evil") {
				t.Errorf("\n%s\nthe rejection quotes the token: %s", test.reason, rejection.Why)
			}
		})
	}
}

func TestKeyRotationAndOutage(t *testing.T) {
	first, second := newKey(t, "k1"), newKey(t, "k2")
	issuer := newIssuer(t, first)
	issuer.down.Store(true)

	authenticator, clock := tokens(t, issuer)
	token := func(key jose.JSONWebKey) string {
		return sign(t, jose.ES256, key, map[string]any{"iss": issuer.URL, "aud": audience, "sub": "alice", "exp": now.Add(time.Hour).Unix()})
	}
	step := func(reason, token string, unchecked, rejected bool) {
		t.Helper()

		_, err := authenticate(t, authenticator, token)
		_, wantRejection := errors.AsType[*auth.Rejection](err)

		if (err != nil && !wantRejection) != unchecked || wantRejection != rejected {
			t.Fatalf("%s: want unchecked %t and rejected %t, got %v", reason, unchecked, rejected, err)
		}
	}

	step("without keys a token cannot be verified", token(first), true, false)
	step("the keys are not fetched again immediately", token(first), true, false)
	issuer.down.Store(false)
	clock.Step(11 * time.Second)
	step("the issuer is available again", token(first), false, false)

	fetches := issuer.fetches.Load()

	for range 20 {
		step("an unknown key", token(newKey(t, "k9")), false, true)
	}

	if again := issuer.fetches.Load() - fetches; again != 0 {
		t.Errorf("unknown keys caused %d fetches within 10 s", again)
	}

	issuer.publish(second)
	clock.Step(11 * time.Second)
	step("a new key is fetched when a token names it", token(second), false, false)
	step("a withdrawn key is rejected", token(first), false, true)
	issuer.down.Store(true)
	clock.Step(time.Hour / 2)
	step("known keys stay valid during an outage of the issuer", token(second), false, false)
	step("tokens with other keys cannot be verified", token(first), true, false)
}

func TestIssuerWithAnotherName(t *testing.T) {
	key := newKey(t, "k1")
	issuer := newIssuer(t, key)
	issuer.claimed = "https://other.example.com"

	authenticator, _ := tokens(t, issuer)

	if _, err := authenticate(t, authenticator, sign(t, jose.ES256, key, map[string]any{"iss": issuer.URL})); err == nil {
		t.Error("keys of an issuer with a different name are accepted")
	}
}

func TestNewTokensRejects(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*auth.TokenOptions)
	}{
		"Plain":      {"keys without TLS may be forged", func(o *auth.TokenOptions) { o.Issuer = "http://issuer.example.com" }},
		"NoURL":      {"an issuer must be a URL", func(o *auth.TokenOptions) { o.Issuer = "issuer" }},
		"NoAudience": {"tokens for other services would be accepted", func(o *auth.TokenOptions) { o.Audiences = nil }},
		"None":       {"an unsigned token can be forged", func(o *auth.TokenOptions) { o.Algorithms = []string{"none"} }},
		"HS256":      {"the service shares no secret with the issuer", func(o *auth.TokenOptions) { o.Algorithms = []string{"RS256", "HS256"} }},
		"NoAlg":      {"no token would be accepted", func(o *auth.TokenOptions) { o.Algorithms = nil }},
		"NoName":     {"clients would have no name", func(o *auth.TokenOptions) { o.NameClaim = "" }},
	}

	for name, test := range cases {
		options := auth.TokenOptions{
			Issuer: "https://issuer.example.com", Audiences: []string{"a"}, Algorithms: []string{"RS256"}, NameClaim: "sub",
			Client: http.DefaultClient, Clock: clocktesting.NewFakeClock(now),
		}

		if _, err := auth.NewTokens(options); err != nil {
			t.Fatal(err)
		}

		test.change(&options)

		if _, err := auth.NewTokens(options); err == nil {
			t.Errorf("%s is accepted: %s", name, test.reason)
		}
	}
}
