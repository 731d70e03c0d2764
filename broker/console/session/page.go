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
	// Problem is shown above the form, if it is not empty.
	Problem string
	// Return is the page to which the login returns, a result of returnTo. Empty means Home.
	Return string
	// LogOut offers to log out instead, so that another user can log in.
	LogOut bool

	// page sets the other fields. Password offers the form, and OIDC is the address of the login at the issuer.
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
