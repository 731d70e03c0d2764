package session

import (
	"net/http"
	"net/url"

	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/internal/program"
)

// loginPage is the content of the login page.
type loginPage struct {
	// Problem, if not empty, is shown above the form.
	Problem string
	// Return is the page to open after the login, as returned by returnTo. Empty means Home.
	Return string
	// LogOut offers a logout instead of the login, so that another user can log in.
	LogOut bool
}

// page writes the login page.
func (s *Sessions) page(w http.ResponseWriter, r *http.Request, status int, content loginPage) {
	if content.Return == "" {
		content.Return = Home
	}

	shown := views.Login{
		Problem: content.Problem, Return: content.Return, LogOut: content.LogOut, Password: s.Access.Passwords != nil && !content.LogOut,
	}

	if s.issuer != nil && !content.LogOut {
		shown.OIDC = pathOIDC + "?" + url.Values{"return": {content.Return}}.Encode()
	}

	views.Render(w, r, status, views.Page{
		Title: "Log in", Body: views.LoginPage(shown), Shell: views.Shell{Theme: views.Theme(r), Version: program.ReadBuild().Version},
	})
}
