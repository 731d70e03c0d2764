package auth_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/auth"
)

const platformsFile = `
platforms:
- name: cf
  users: [cf, cf-next]
  claims: {scope: [cf:write], groups: [cf-a, cf-b]}
  certificates: {ou: [cf]}
  regions: [cf-eu10]
  tenants: [account-1]
- name: btp
  users: [btp]
  claims: {groups: [btp]}
- name: retired
`

func parsePlatforms(t *testing.T, text string) auth.Platforms {
	t.Helper()

	platforms, err := auth.ParsePlatforms([]byte(text))
	if err != nil {
		t.Fatal(err)
	}

	return platforms
}

func TestParsePlatforms(t *testing.T) {
	if platform, found := parsePlatforms(t, platformsFile).Find("cf"); !found || !platform.AllowsRegion("cf-eu10") ||
		platform.AllowsRegion("cf-us10") || !platform.AllowsTenant("account-1") || platform.AllowsTenant("") {
		t.Errorf("want the platform with its region and its tenant, got %+v", platform)
	}

	if platform, found := parsePlatforms(t, platformsFile).Find("retired"); !found || !platform.AllowsRegion("any") || !platform.AllowsTenant("any") {
		t.Errorf("a platform without lists is not limited, got %+v", platform)
	}

	if diff := cmp.Diff([]auth.Platform{{Name: "default"}}, auth.Platforms{}.List()); diff != "" {
		t.Errorf("without a file, there is one platform: -want +got\n%s", diff)
	}

	for name, test := range map[string]struct{ reason, text, want string }{
		"Empty":          {"an empty file would end the isolation", "", "no platforms"},
		"EmptyList":      {"so would an empty list", "platforms: []", "no platforms"},
		"UnknownField":   {"a misspelled field must not lift a limit", "platforms: [{name: a, region: [x]}]", "region"},
		"RepeatedField":  {"the second list would replace the first", "platforms: [{name: a, users: [x], users: [y]}]", "users"},
		"NoName":         {"instances store the name", "platforms: [{users: [x]}]", `platform 1: the name ""`},
		"Name":           {"names are labels", "platforms: [{name: a b}]", `platform 1: the name "a b"`},
		"SameName":       {"names are unique", "platforms: [{name: a}, {name: a}]", "platform a: the name a is already used by platform a"},
		"SameUser":       {"a user has one platform", "platforms: [{name: a, users: [u]}, {name: b, users: [u]}]", "platform b: the user u is already used by platform a"},
		"SameClaim":      {"a claim has one platform", "platforms: [{name: a, claims: {g: [x]}}, {name: b, claims: {g: [y, x]}}]", "the claim g:x is already used"},
		"SameAttribute":  {"an attribute has one platform", "platforms: [{name: a, certificates: {cn: [x]}}, {name: b, certificates: {cn: [x]}}]", "the certificate attribute cn:x is already used"},
		"NoAttribute":    {"the attribute could never match", "platforms: [{name: a, certificates: {common: [x]}}]", `cannot be identified by the certificate attribute "common"`},
		"EmptyRegion":    {"an empty text is a mistake", `platforms: [{name: a, regions: [""]}]`, "must not contain empty values"},
		"EmptyClaim":     {"an empty claim would match too much", `platforms: [{name: a, claims: {g: [""]}}]`, "must not contain empty values"},
		"SeveralReasons": {"all mistakes are listed", "platforms: [{name: A}, {name: B}]", `platform 2: the name "B"`},
	} {
		if _, err := auth.ParsePlatforms([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %s: want an error with %q, got %v", name, test.reason, test.want, err)
		}
	}
}

func TestRequirePlatform(t *testing.T) {
	claims := func(name string, values ...string) map[string][]string { return map[string][]string{name: values} }

	for name, test := range map[string]struct {
		reason       string
		unconfigured bool
		identity     auth.Identity
		want         string
	}{
		"User":           {reason: "a user belongs to a platform", identity: auth.Identity{Name: "cf-next", Means: auth.ByPassword}, want: "cf"},
		"OtherUser":      {reason: "the second platform", identity: auth.Identity{Name: "btp", Means: auth.ByPassword}, want: "btp"},
		"UnknownUser":    {reason: "a user without a platform is rejected", identity: auth.Identity{Name: "other", Means: auth.ByPassword}},
		"TokenOfUser":    {reason: "a token with the name of a user is another client", identity: auth.Identity{Name: "cf", Means: auth.ByToken}},
		"Scope":          {reason: "a claim decides", identity: auth.Identity{Name: "x", Means: auth.ByToken, Attributes: claims("scope", "openid", "cf:write")}, want: "cf"},
		"Group":          {reason: "one of several values is enough", identity: auth.Identity{Name: "x", Means: auth.ByToken, Attributes: claims("groups", "cf-b")}, want: "cf"},
		"OtherGroup":     {reason: "the value has to match", identity: auth.Identity{Name: "x", Means: auth.ByToken, Attributes: claims("groups", "cf")}},
		"TwoPlatforms":   {reason: "a token must not choose between platforms", identity: auth.Identity{Name: "x", Means: auth.ByToken, Attributes: claims("groups", "cf-a", "btp")}},
		"Certificate":    {reason: "an attribute of a certificate decides", identity: auth.Identity{Name: "x", Means: auth.ByCertificate, Attributes: claims("ou", "cf")}, want: "cf"},
		"ClaimOfCert":    {reason: "attributes of certificates are not claims", identity: auth.Identity{Name: "x", Means: auth.ByCertificate, Attributes: claims("groups", "btp")}},
		"Anonymous":      {reason: "a client without a name has no platform", identity: auth.Identity{}},
		"NotConfigured":  {reason: "without platforms, all clients are one platform", unconfigured: true, identity: auth.Identity{Name: "any", Means: auth.ByPassword}, want: "default"},
		"NoCredentials":  {reason: "also without authentication", unconfigured: true, want: "default"},
		"RoleIsNoReason": {reason: "roles grant no platform", identity: auth.Identity{Name: "root", Means: auth.ByPassword, Roles: []auth.Role{auth.RoleAdmin}}},
	} {
		t.Run(name, func(t *testing.T) {
			platforms := parsePlatforms(t, platformsFile)
			if test.unconfigured {
				platforms = auth.Platforms{}
			}

			var refused []string

			authorizer := auth.NewAuthorizer(auth.NoAuthentication{})
			authorizer.Refused = func(reason string) { refused = append(refused, reason) }

			got := ""
			handler := authorizer.RequirePlatform(func() auth.Platforms { return platforms })(
				http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = auth.PlatformOf(r.Context()).Name }))
			response := httptest.NewRecorder()

			request := httptest.NewRequestWithContext(auth.NewContext(t.Context(), test.identity), http.MethodGet, "/", http.NoBody)
			handler.ServeHTTP(response, request)

			if got != test.want || (test.want == "") != (response.Code == http.StatusForbidden) {
				t.Errorf("\n%s\nwant the platform %q, got %q with status %d", test.reason, test.want, got, response.Code)
			}

			if (test.want == "") != (len(refused) == 1 && refused[0] == auth.Forbidden) {
				t.Errorf("\n%s\nthe refusals are counted as %v", test.reason, refused)
			}
		})
	}
}
