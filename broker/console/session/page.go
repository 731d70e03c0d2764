package session

import (
	_ "embed"
	"net/http"
	"net/url"
)

//go:embed login.html
var loginHTML string

// loginPage is the content of the login page.
type loginPage struct {
	// Problem, if not empty, is shown above the form.
	Problem string
	// Return is the page to open after the login, as returned by returnTo. Empty means Home.
	Return string
	// LogOut offers a logout instead of the login, so that another user can log in.
	LogOut bool

	// The method page sets the other fields. Password offers the form for passwords, and OIDC is the URL of the login at the
	// issuer.
	Title    string
	Password bool
	OIDC     string
}

// page writes the login page.
func (s *Sessions) page(w http.ResponseWriter, r *http.Request, status int, content loginPage) {
	if content.Return == "" {
		content.Return = Home
	}

	content.Title = "Log in"
	content.Password = s.Access.Passwords != nil && !content.LogOut

	if s.issuer != nil && !content.LogOut {
		content.OIDC = pathOIDC + "?" + url.Values{"return": {content.Return}}.Encode()
	}

	s.template.Write(w, r, status, content)
}
