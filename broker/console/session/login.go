package session

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// Messages for users.
const (
	textNoRole      = "Your user needs the viewer role to use the console."
	textEnded       = "The session has ended. Log in again."
	textUnavailable = "Logging in is not possible at the moment. Try again later."
	textTooLarge    = "Your user has too many groups or accounts for a session. Ask an operator to configure the issuer to send fewer."
)

func withSession(ctx context.Context, session Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, session)
}

// showLogin shows the login page. A client that needs no login is redirected to the requested page.
func (s *Sessions) showLogin(w http.ResponseWriter, r *http.Request) {
	page := returnTo(r.URL.Query().Get("return"))

	if _, _, found := s.client(w, r); found {
		http.Redirect(w, r, page, http.StatusSeeOther) //nolint:gosec // returnTo allows pages of the console only

		return
	}

	s.page(w, r, http.StatusOK, loginPage{Return: page})
}

// logIn checks the user name and the password in the form, and starts a session.
func (s *Sessions) logIn(w http.ResponseWriter, r *http.Request) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" || s.Access.Passwords == nil {
		s.page(w, r, http.StatusBadRequest, loginPage{Problem: "Use the form on this page to log in."})

		return
	}

	if err := r.ParseForm(); err != nil {
		s.page(w, r, http.StatusBadRequest, loginPage{Problem: "The form is too large or malformed."})

		return
	}

	page, password := returnTo(r.PostForm.Get("return")), r.PostForm.Get("password")

	identity, err := s.Access.Authorizer.Password(r, s.Access.Passwords(), r.PostForm.Get("user"), password)
	if err != nil {
		status := http.StatusUnauthorized
		if delayed, ok := errors.AsType[*auth.DelayedError](err); ok {
			status = http.StatusTooManyRequests
			w.Header().Set("Retry-After", strconv.Itoa(max(1, int(delayed.Wait.Round(time.Second)/time.Second))))
		}

		audit.Mark(r.Context(), "")
		s.page(w, r, status, loginPage{Problem: err.Error(), Return: page})

		return
	}

	session := stored{ID: newID(), Name: identity.Name, Means: identity.Means}
	session.Proof = auth.Proof(password, session.ID)

	s.start(w, r, identity, session, page)
}

// start sets the session cookie, records the login and redirects to the requested page. If it cannot record the login, it starts no
// session. Users without a role for the console get no session, except users of the issuer, because they may be tenants.
func (s *Sessions) start(w http.ResponseWriter, r *http.Request, identity auth.Identity, session stored, page string) {
	ctx := auth.Identified(r.Context(), identity)
	httpserver.Note(ctx, logging.User, identity.Name)

	if !identity.Has(auth.RoleViewer) && identity.Means != auth.ByToken {
		s.page(w, r, http.StatusForbidden, loginPage{Problem: textNoRole, Return: page})

		return
	}

	if err := s.begin(w, r, session); err != nil {
		s.Log.WithError(err).WithField(logging.User, identity.Name).Warn("a console login was rejected because its session cookie would be too large")
		s.page(w, r, http.StatusForbidden, loginPage{Problem: textTooLarge, Return: page})

		return
	}

	if err := s.Recorder.RecordAlone(ctx, auditlog.Entry{Action: auditlog.ActionLogin, Status: http.StatusOK}); err != nil {
		w.Header().Del("Set-Cookie")
		s.unavailable(w, r, page, err)

		return
	}

	http.Redirect(w, r, page, http.StatusSeeOther) //nolint:gosec // returnTo allows pages of the console only
}

// unavailable responds with 503 and a message that asks the user to try again later, and logs the cause.
func (s *Sessions) unavailable(w http.ResponseWriter, r *http.Request, page string, cause error) {
	s.Log.WithError(cause).Warn("a console login failed")
	w.Header().Set("Retry-After", "5")
	s.page(w, r, http.StatusServiceUnavailable, loginPage{Problem: textUnavailable, Return: page})
}

// logOut removes the session cookie and records the logout in the audit log. It cannot revoke copies of the cookie; they stay valid
// until the session expires.
func (s *Sessions) logOut(w http.ResponseWriter, r *http.Request) {
	identity, session, found := s.client(w, r)
	w.Header().Del("Set-Cookie") // client may have renewed the session
	s.sessions.remove(w, s.secure(r))

	if found && session.CanLogOut {
		ctx := auth.Identified(r.Context(), identity)
		if err := s.Recorder.RecordAlone(ctx, auditlog.Entry{Action: auditlog.ActionLogout, Status: http.StatusOK}); err != nil {
			s.Log.WithError(err).Warn("audit: recording a logout failed")
		}
	}

	http.Redirect(w, r, pathLogin, http.StatusSeeOther)
}
