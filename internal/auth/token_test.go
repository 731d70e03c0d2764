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
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/auth"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// tokens accepts those of the issuer.
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

// show makes a request with the token.
func show(t *testing.T, mechanism auth.Mechanism, token string) (auth.Identity, error) {
	t.Helper()

	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	request.Header.Set("Authorization", "Bearer "+token)

	return mechanism.Authenticate(request)
}

func TestTokens(t *testing.T) {
	key, stranger := newKey(t, "k1"), newKey(t, "k1")
	issuer := newIssuer(t, key)
	mechanism, _ := tokens(t, issuer)

	// claims are those of a good token, changed.
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
		reason string
		token  string
		want   auth.Identity
		wrong  string
	}{
		"Scope": {
			reason: "a scope in a text gives a role", token: signed(nil),
			want: auth.Identity{Name: "alice", Means: auth.ByToken, Roles: []auth.Role{auth.RoleOSB}},
		},
		"ScopeList": {
			reason: "some issuers call it scp and write a list", token: signed(map[string]any{"scope": nil, "scp": []string{"broker:write"}}),
			want: auth.Identity{Name: "alice", Means: auth.ByToken, Roles: []auth.Role{auth.RoleOSB}},
		},
		"Groups": {
			reason: "several groups give several roles, those that are not known none",
			token:  signed(map[string]any{"scope": nil, "groups": []any{"runtimeAdmin", "others", 7, "runtimeViewer"}}),
			want:   auth.Identity{Name: "alice", Means: auth.ByToken, Roles: []auth.Role{auth.RoleViewer, auth.RoleAdmin}},
		},
		"NoRole": {
			reason: "somebody without a role is known all the same", token: signed(map[string]any{"scope": "openid"}),
			want: auth.Identity{Name: "alice", Means: auth.ByToken},
		},
		"AudienceList": {
			reason: "one of several audiences is ours", token: signed(map[string]any{"aud": []string{"a", audience}}),
			want: auth.Identity{Name: "alice", Means: auth.ByToken, Roles: []auth.Role{auth.RoleOSB}},
		},
		"JustExpired": {
			reason: "the clocks may differ", token: signed(map[string]any{"exp": now.Add(-30 * time.Second).Unix()}),
			want: auth.Identity{Name: "alice", Means: auth.ByToken, Roles: []auth.Role{auth.RoleOSB}},
		},
		"Expired":       {reason: "a token ends", token: signed(map[string]any{"exp": now.Add(-2 * time.Minute).Unix()}), wrong: "expired"},
		"NoExpiry":      {reason: "a token that never ends is not accepted", token: signed(map[string]any{"exp": nil}), wrong: "expired"},
		"NotYet":        {reason: "a token has a begin", token: signed(map[string]any{"nbf": now.Add(time.Hour).Unix()}), wrong: "not valid yet"},
		"OtherIssuer":   {reason: "another issuer's tokens are not ours", token: signed(map[string]any{"iss": "https://evil.example.com"}), wrong: "not one of the issuer's"},
		"OtherAudience": {reason: "a token for somebody else is not replayed here", token: signed(map[string]any{"aud": "somebody"}), wrong: "audience"},
		"NoAudience":    {reason: "a token for nobody is for nobody", token: signed(map[string]any{"aud": nil}), wrong: "audience"},
		"NoName":        {reason: "somebody has to have done it", token: signed(map[string]any{"sub": nil}), wrong: `no claim "sub"`},
		"OtherKey":      {reason: "the same id does not make the same key", token: sign(t, jose.ES256, stranger, claims(nil)), wrong: "not one of the issuer's"},
		"NoAlgorithm":   {reason: "an unsigned token is nobody's", token: unsigned(`{"alg":"none"}`), wrong: "not accepted"},
		"Symmetric":     {reason: "a public key is no password", token: sign(t, jose.HS256, []byte(strings.Repeat("k", 64)), claims(nil)), wrong: "not accepted"},
		"Rubbish":       {reason: "what is no token is told so", token: "rubbish", wrong: "not accepted"},
		"Empty":         {reason: "nothing is no token", token: "", wrong: "not accepted"},
		"TooLong":       {reason: "a stranger's text is not parsed without bound", token: signed(map[string]any{"x": strings.Repeat("x", 20_000)}), wrong: "longer"},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := show(t, mechanism, test.token)

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("\n%s\nidentity: -want +got\n%s", test.reason, diff)
			}

			rejection, rejected := errors.AsType[*auth.Rejection](err)
			if rejected != (test.wrong != "") || rejected && !strings.Contains(rejection.Why, test.wrong) {
				t.Errorf("\n%s\nwant a rejection with %q, got %v", test.reason, test.wrong, err)
			}

			if rejected && strings.Contains(rejection.Why, "evil") {
				t.Errorf("\n%s\nthe rejection repeats what the token says: %s", test.reason, rejection.Why)
			}
		})
	}
}

func TestKeysAreExchangedAndKept(t *testing.T) {
	first, second := newKey(t, "k1"), newKey(t, "k2")
	issuer := newIssuer(t, first)
	issuer.away.Store(true)

	mechanism, clock := tokens(t, issuer)
	token := func(key jose.JSONWebKey) string {
		return sign(t, jose.ES256, key, map[string]any{"iss": issuer.URL, "aud": audience, "sub": "alice", "exp": now.Add(time.Hour).Unix()})
	}
	step := func(reason, token string, unchecked, rejected bool) {
		t.Helper()

		_, err := show(t, mechanism, token)
		_, wrong := errors.AsType[*auth.Rejection](err)

		if (err != nil && !wrong) != unchecked || wrong != rejected {
			t.Fatalf("%s: unchecked %t and rejected %t are wanted, got %v", reason, unchecked, rejected, err)
		}
	}

	step("without keys a token cannot be checked, which is not the token's fault", token(first), true, false)
	step("the issuer is not asked again at once", token(first), true, false)
	issuer.away.Store(false)
	clock.Step(11 * time.Second)
	step("the issuer has come back", token(first), false, false)

	asked := issuer.asked.Load()

	for range 20 {
		step("a key that is not known", token(newKey(t, "k9")), false, true)
	}

	if again := issuer.asked.Load() - asked; again != 0 {
		t.Errorf("the issuer was asked %d times within 10 s because of keys that are not known", again)
	}

	issuer.publish(second)
	clock.Step(11 * time.Second)
	step("a new key is fetched when a token names it", token(second), false, false)
	step("what the issuer has withdrawn is not accepted any more", token(first), false, true)
	issuer.away.Store(true)
	clock.Step(time.Hour / 2)
	step("known keys go on while the issuer is away", token(second), false, false)
	step("other ones cannot be checked", token(first), true, false)
}

func TestIssuerThatSaysToBeAnother(t *testing.T) {
	key := newKey(t, "k1")
	issuer := newIssuer(t, key)
	issuer.claimed = "https://other.example.com"

	mechanism, _ := tokens(t, issuer)

	if _, err := show(t, mechanism, sign(t, jose.ES256, key, map[string]any{"iss": issuer.URL})); err == nil {
		t.Error("the keys of an issuer count that says to be another one")
	}
}

func TestRefusedTokenOptions(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*auth.TokenOptions)
	}{
		"Plain":      {"keys that came unprotected are anybody's", func(o *auth.TokenOptions) { o.Issuer = "http://issuer.example.com" }},
		"NoURL":      {"an issuer has an address", func(o *auth.TokenOptions) { o.Issuer = "issuer" }},
		"NoAudience": {"tokens for others would be accepted", func(o *auth.TokenOptions) { o.Audiences = nil }},
		"None":       {"unsigned tokens are nobody's", func(o *auth.TokenOptions) { o.Algorithms = []string{"none"} }},
		"HS256":      {"there is no secret that both sides know", func(o *auth.TokenOptions) { o.Algorithms = []string{"RS256", "HS256"} }},
		"NoAlg":      {"nothing would be accepted", func(o *auth.TokenOptions) { o.Algorithms = nil }},
		"NoName":     {"nobody would have a name", func(o *auth.TokenOptions) { o.NameClaim = "" }},
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
