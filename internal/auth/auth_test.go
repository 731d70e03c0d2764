package auth_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/secret"
)

func TestParseUsers(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason   string
		text     secret.String
		name     string
		password string
		want     auth.Identity
		found    bool
	}{
		"DefaultRole": {
			reason: "a user without roles is a platform",
			text:   "cf:secret", name: "cf", password: "secret",
			want: auth.Identity{Name: "cf", Means: auth.ByPassword, Roles: []auth.Role{auth.RoleOSB}}, found: true,
		},
		"Roles": {
			reason: "roles are joined with a plus",
			text:   "a:1,b:2:osb+admin", name: "b", password: "2",
			want: auth.Identity{Name: "b", Means: auth.ByPassword, Roles: []auth.Role{auth.RoleOSB, auth.RoleAdmin}}, found: true,
		},
		"PercentEncoded": {
			reason: "separators in names and passwords are percent-encoded",
			text:   "a%2Cb:%3A%25%2B:viewer", name: "a,b", password: ":%+",
			want: auth.Identity{Name: "a,b", Means: auth.ByPassword, Roles: []auth.Role{auth.RoleViewer}}, found: true,
		},
		"WrongPassword":  {reason: "the password must match", text: "cf:secret", name: "cf", password: "Secret"},
		"WrongUser":      {reason: "the name must match", text: "cf:secret", name: "CF", password: "secret"},
		"OtherPassword":  {reason: "a password belongs to one user", text: "a:1,b:2", name: "a", password: "2"},
		"EmptyPassword":  {reason: "no user has an empty password", text: "cf:secret", name: "cf"},
		"NoUsers":        {reason: "an empty list has no user", text: " ", name: "cf", password: "secret"},
		"SpacesTrimmed":  {reason: "spaces around entries are ignored", text: " a:1 , b:2 ", name: "b", password: "2", found: true, want: auth.Identity{Name: "b", Means: auth.ByPassword, Roles: []auth.Role{auth.RoleOSB}}},
		"PlusInPassword": {reason: "a plus in a password needs no encoding", text: "a:1+1", name: "a", password: "1+1", found: true, want: auth.Identity{Name: "a", Means: auth.ByPassword, Roles: []auth.Role{auth.RoleOSB}}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			users, err := auth.ParseUsers(test.text)
			if err != nil {
				t.Fatalf("\n%s\nParseUsers: %v", test.reason, err)
			}

			got, found := users.Find(test.name, test.password)
			if found != test.found {
				t.Errorf("\n%s\nfound: want %t, got %t", test.reason, test.found, found)
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("\n%s\nidentity: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

func TestParseUsersReportsAllErrors(t *testing.T) {
	t.Parallel()

	_, err := auth.ParseUsers("good:1,nopassword,twice:1,twice:1,:empty,user:hunter2:king,bad:%zz,co%3Alon:1,a:b:c:d,good:2:viewer")
	if err == nil {
		t.Fatal("want errors, got none")
	}

	want := strings.Join([]string{
		"user 2: it must have the form user:password[:role+role]",
		"user 4: the same user and password are listed twice",
		"user 5: the name or the password is empty",
		"user 6: the role is unknown: use osb, viewer, operator or admin, and percent-encode `,:+%` in names and passwords",
		"user 7: the percent-encoding of the name or the password is invalid",
		"user 8: a name cannot contain a colon in HTTP Basic authentication",
		"user 9: it must have the form user:password[:role+role]",
		"user 10: an earlier entry for the user has different roles; all passwords of a user must have the same roles",
	}, "\n")
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("errors: -want +got\n%s", diff)
	}

	if strings.Contains(err.Error(), "hunter2") {
		t.Error("an error quotes a password")
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		has    auth.Role
		want   []auth.Role
	}{
		"Admin":    {reason: "an admin has all roles of people, but not that of platforms", has: auth.RoleAdmin, want: []auth.Role{auth.RoleViewer, auth.RoleOperator, auth.RoleAdmin}},
		"Operator": {reason: "an operator is a viewer", has: auth.RoleOperator, want: []auth.Role{auth.RoleViewer, auth.RoleOperator}},
		"Viewer":   {reason: "a viewer can only read", has: auth.RoleViewer, want: []auth.Role{auth.RoleViewer}},
		"OSB":      {reason: "a platform cannot call the operator API", has: auth.RoleOSB, want: []auth.Role{auth.RoleOSB}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got []auth.Role

			for _, role := range []auth.Role{auth.RoleOSB, auth.RoleViewer, auth.RoleOperator, auth.RoleAdmin} {
				if (auth.Identity{Roles: []auth.Role{test.has}}).Has(role) {
					got = append(got, role)
				}
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("\n%s\nroles: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

func TestRequire(t *testing.T) {
	t.Parallel()

	type response struct {
		Status    int
		Challenge bool
		Error     string
		// Description is compared only if Status is 403.
		Description string
		User        string
	}

	noRole := response{Status: http.StatusForbidden, Error: "Forbidden", Description: "The user lacks the viewer role."}

	cases := map[string]struct {
		reason string
		users  secret.String
		user   string
		pass   string
		want   response
	}{
		"Nothing":   {reason: "a request without credentials is challenged", users: "v:1:viewer", want: response{Status: http.StatusUnauthorized, Challenge: true, Error: "Unauthorized"}},
		"Wrong":     {reason: "wrong credentials are challenged", users: "v:1:viewer", user: "v", pass: "2", want: response{Status: http.StatusUnauthorized, Challenge: true, Error: "Unauthorized"}},
		"WrongRole": {reason: "a known user without the role is rejected without a challenge", users: "p:1", user: "p", pass: "1", want: noRole},
		"Implied":   {reason: "an admin is a viewer, and the handler gets the name", users: "a:1:admin", user: "a", pass: "1", want: response{Status: http.StatusOK, User: "a"}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			users, err := auth.ParseUsers(test.users)
			if err != nil {
				t.Fatal(err)
			}

			var got response

			handler := auth.NewAuthorizer(users).Require(auth.RoleViewer)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got.User = auth.FromContext(r.Context()).Name
			}))

			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			if test.user != "" {
				request.SetBasicAuth(test.user, test.pass)
			}

			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)

			var body struct{ Error, Description string }
			if recorder.Code != http.StatusOK {
				if err := json.Unmarshal(recorder.Body.Bytes(), &body); err != nil || body.Description == "" {
					t.Errorf("\n%s\nbody %q: %v", test.reason, recorder.Body, err)
				}
			}

			got.Status, got.Challenge, got.Error = recorder.Code, recorder.Header().Get("WWW-Authenticate") != "", body.Error
			if recorder.Code == http.StatusForbidden {
				got.Description = body.Description
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("\n%s\nresponse: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

func TestCheckAddress(t *testing.T) {
	t.Parallel()

	cases := map[string]bool{
		"127.0.0.1:8080": false, "127.9.9.9:1": false, "[::1]:8080": false, "localhost:8080": false,
		":8080": true, "0.0.0.0:8080": true, "[::]:8080": true, "192.168.1.1:80": true, "broker:8080": true, "nonsense": true,
	}

	for address, want := range cases {
		if got := auth.CheckAddress(address, auth.NoAuthentication{}) != nil; got != want {
			t.Errorf("%s without authentication: rejected is %t, want %t", address, got, want)
		}

		users, err := auth.ParseUsers("a:1")
		if err != nil {
			t.Fatal(err)
		}

		if err := auth.CheckAddress(address, users); err != nil {
			t.Errorf("%s with users: %v", address, err)
		}
	}
}
