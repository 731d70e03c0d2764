package session_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/console/assets"
	"github.com/environment-broker/environment-broker/broker/console/session"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/secret"
)

func TestLoginWithPassword(t *testing.T) {
	b := newFixture(t).browser()

	b.wantLogin("no page without a login")
	b.want("a program gets a status and no redirect", b.get("/console/instances", "Sec-Fetch-Dest", "empty"), http.StatusUnauthorized)
	b.want("nor does a stream", b.get("/console/events", "Accept", "text/event-stream"), http.StatusUnauthorized)
	b.want("assets need no login", b.get(assets.Path("console.css")), http.StatusOK)
	b.want("dots do not lead from the assets to the pages", b.get("/console/assets/../instances", "Sec-Fetch-Dest", "empty"), http.StatusUnauthorized)
	b.want("nor do encoded ones", b.get("/console/assets/%2e%2e/instances", "Sec-Fetch-Dest", "empty"), http.StatusUnauthorized)

	shown := b.get("/console/login?return=%2Fconsole%2Finstances%3Fplan%3Daws")
	if !strings.Contains(shown.Body, `value="/console/instances?plan=aws"`) || !strings.Contains(shown.Body, `type="password"`) {
		t.Errorf("the login page lacks a form that returns to the page: %s", shown.Body)
	}

	b.want("a wrong password", b.logIn("vera", "x"), http.StatusUnauthorized)
	b.want("an unknown user", b.logIn("victor", "v"), http.StatusUnauthorized)
	b.want("a platform has no console", b.logIn("cf", "c"), http.StatusForbidden)
	b.wantLogin("a failed login begins no session")

	first := b.logIn("vera", "v")
	b.want("the right password", first, http.StatusSeeOther)

	if got := first.Header.Get("Location"); got != "/console/instances" {
		t.Errorf("the login returns to %s", got)
	}

	b.wantPage("the session is that of the user", "operator page of vera")
	b.want("the login page returns at once", b.get("/console/login"), http.StatusSeeOther)

	b.want("a logout", b.send(http.MethodPost, "/console/logout", nil), http.StatusSeeOther)
	b.wantLogin("the logout ends the session")
	b.want("a logout by a link has no effect", b.get("/console/logout", "Sec-Fetch-Dest", "empty"), http.StatusUnauthorized)

	if diff := cmp.Diff([]string{
		"access  Unauthorized", "access  Unauthorized", "access  Unauthorized", "access  Unauthorized", "access  Unauthorized",
		"login  Unauthorized", "login  Unauthorized", "login cf Forbidden", "login vera OK", "logout vera OK",
	}, b.actions()); diff != "" {
		t.Errorf("audit log: -want +got\n%s", diff)
	}
}

func TestFailedLoginsAreDelayed(t *testing.T) {
	b := newFixture(t, func(options *auth.Options, _ *session.Options) { options.Config.LoginFailures = 2 }).browser()

	b.logIn("vera", "x")
	b.logIn("vera", "x")

	got := b.logIn("vera", "v")
	b.want("the right password is not compared", got, http.StatusTooManyRequests)

	if got.Header.Get("Retry-After") != "1" || !strings.Contains(got.Body, "Too many failed logins") {
		t.Errorf("the response does not explain the delay: %v %s", got.Header, got.Body)
	}

	b.clock.Step(time.Second)
	b.want("after the delay", b.logIn("vera", "v"), http.StatusSeeOther)
}

func TestSessionsEnd(t *testing.T) {
	b := newFixture(t).browser()

	b.logIn("vera", "v")
	b.clock.Step(59 * time.Minute)
	b.wantPage("before the idle time-out", "operator page of vera")
	b.clock.Step(59 * time.Minute)
	b.wantPage("a request has postponed it", "operator page of vera")
	b.clock.Step(59 * time.Minute)
	b.get("/console/instances", "X-Console-Live", "1")
	b.get("/console/events", "Accept", "text/event-stream")
	b.clock.Step(2 * time.Minute)
	b.wantLogin("requests that the page sends by itself do not postpone it")

	b.logIn("vera", "v")

	for range 23 {
		b.clock.Step(31 * time.Minute)
		b.wantPage("within the lifetime", "operator page of vera")
	}

	b.clock.Step(10 * time.Minute)
	b.wantLogin("a session that is in use ends, too")
}

func TestPasswordsEndSessions(t *testing.T) {
	var current auth.Users

	f := newFixture(t)
	f.options.Access.Passwords = func() auth.Users { return current }
	b := f.browser()

	set := func(text string) {
		parsed, err := auth.ParseUsers(secret.String(text))
		if err != nil {
			t.Fatal(err)
		}

		current = parsed
	}

	set("vera:v:viewer")
	b.logIn("vera", "v")

	set("vera:v:viewer,vera:new:viewer")
	b.wantPage("another password of the user", "operator page of vera")

	set("vera:new:viewer")
	b.wantLogin("a removed password")

	set("vera:v:osb")
	b.want("a removed role", b.get("/console/instances"), http.StatusForbidden)

	set("olga:v:viewer")
	b.wantLogin("a removed user")
}

func TestSessionsSurviveRestartsAndKeyRotation(t *testing.T) {
	f := newFixture(t)
	old, next := secret.NewKey("old; key=1"), secret.NewKey("next")

	f.options.Keys = f.keys(old)
	f.restart()

	b := f.browser()
	b.logIn("vera", "v")

	f.restart()
	b.wantPage("after a restart", "operator page of vera")

	f.options.Keys = f.keys(next, old)
	f.restart()
	b.wantPage("with a former key", "operator page of vera")

	f.clock.Step(10 * time.Minute)
	b.wantPage("the session is renewed with the new key", "operator page of vera")

	f.options.Keys = f.keys(next)
	f.restart()
	b.wantPage("without the former key", "operator page of vera")

	f.options.Keys = f.keys(secret.NewKey("next"))
	f.restart()
	b.wantLogin("another key with the same ID opens nothing")
}

func TestNoLoginWithoutAudit(t *testing.T) {
	f := newFixture(t)
	b := f.browser()

	if _, err := f.db.Writer().ExecContext(t.Context(), "DROP TABLE audit"); err != nil {
		t.Fatal(err)
	}

	b.want("the login cannot be recorded", b.logIn("vera", "v"), http.StatusServiceUnavailable)
	b.wantLogin("there is no session")
}

func TestForms(t *testing.T) {
	b := newFixture(t).browser()

	form := url.Values{"user": {"vera"}, "password": {"v"}}
	b.want("another content type", b.send(http.MethodPost, "/console/login", form, "Content-Type", "text/plain"), http.StatusBadRequest)

	form.Set("password", strings.Repeat("v", 65<<10))
	b.want("a large form", b.send(http.MethodPost, "/console/login", form), http.StatusRequestEntityTooLarge)
}
