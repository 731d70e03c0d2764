package session

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// FuzzCookie reads arbitrary cookies. Only cookies that the service has sealed are accepted.
func FuzzCookie(f *testing.F) {
	keys, err := secret.ParseKeyring(secret.NewKey("k"))
	if err != nil {
		f.Fatal(err)
	}

	sealed := keys.Seal([]byte(`{"u":"vera"}`), "cookie console-session")
	other := keys.Seal([]byte(`{"u":"vera"}`), "cookie console-login")

	for _, seed := range []string{sealed, other, "k:", "%zz:", sealed[:len(sealed)-4]} {
		f.Add(seed)
	}

	read := cookie{name: "console-session", keys: keys}

	f.Fuzz(func(t *testing.T, value string) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/", http.NoBody)
		request.Header.Set("Cookie", "console-session="+value)

		var got stored
		if accepted := read.get(request, false, &got); accepted != (strings.Trim(value, `" `) == sealed) && !strings.Contains(value, ";") {
			t.Errorf("the cookie %q is accepted: %t", value, accepted)
		}
	})
}

// FuzzReturnTo checks that a browser that resolves a result of returnTo stays within the console.
func FuzzReturnTo(f *testing.F) {
	for _, seed := range []string{"/console/instances?x=1", "//evil.example.com", "/console/../x", "/console/%2e%2e/", "/console/\\..", "/console/#x"} {
		f.Add(seed)
	}

	base := &url.URL{Scheme: "https", Host: "broker.example.com", Path: pathLogin}

	f.Fuzz(func(t *testing.T, address string) {
		resolved, err := base.Parse(returnTo(address))
		if err != nil || resolved.Host != base.Host || resolved.Scheme != base.Scheme || !strings.HasPrefix(resolved.Path+"/", Home) {
			t.Errorf("%q leads to %v, %v", address, resolved, err)
		}
	})
}
