package session

import (
	"net/http"
	"net/url"
	"path"
	"strings"
)

// Home is the path of the console's home page.
const Home = "/console/"

// maxReturn is the maximum length of a URL to open after a login, in bytes.
const maxReturn = 1024

// returnTo returns the address if it is a page of the console, and Home otherwise. A login must redirect neither to another site
// nor to the login itself. returnTo checks the cleaned path, because browsers also resolve dots and treat backslashes as slashes.
func returnTo(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || len(address) > maxReturn || strings.ContainsAny(address, "\\\t\r\n\x00") {
		return Home
	}

	clean := path.Clean(parsed.Path)

	switch {
	case parsed.Scheme != "" || parsed.Host != "" || parsed.User != nil || parsed.Opaque != "" || !strings.HasPrefix(address, Home):
		return Home
	case clean+"/" != Home && !strings.HasPrefix(clean, Home), clean == pathLogout, clean == pathLogin, strings.HasPrefix(clean, pathLogin+"/"):
		return Home
	default:
		return address
	}
}

// loginFor returns the URL of the login page. After the login, the browser opens the requested page.
func loginFor(r *http.Request) string {
	page := returnTo(r.URL.RequestURI())
	if page == Home {
		return pathLogin
	}

	return pathLogin + "?" + url.Values{"return": {page}}.Encode()
}
