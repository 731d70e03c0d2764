package source_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/bundle/source"
)

func digestOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func fromURL(url string, change ...func(*v1alpha1.HTTPSource)) v1alpha1.BundleSource {
	from := &v1alpha1.HTTPSource{URL: url}
	for _, change := range change {
		change(from)
	}

	return v1alpha1.BundleSource{Type: v1alpha1.SourceTypeHTTP, HTTP: from}
}

func withLogin(secret string) func(*v1alpha1.HTTPSource) {
	return func(from *v1alpha1.HTTPSource) { from.Auth.Secret.Name = secret }
}

func withDigest(digest string) func(*v1alpha1.HTTPSource) {
	return func(from *v1alpha1.HTTPSource) { from.SHA256 = digest }
}

// TestHTTP checks that the archive is pinned by its digest.
func TestHTTP(t *testing.T) {
	files := map[string]string{"manifests/a.yaml": "a"}
	served := packed(t, files)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(served) }))
	t.Cleanup(server.Close)

	options := source.Options{}
	resolved := mustFetch(t, options, fromURL(server.URL), files)

	if want := digestOf(served); resolved.HTTP.SHA256 != want || resolved.HTTP.URL != server.URL {
		t.Errorf("resolved to %+v, want the digest %s", resolved.HTTP, want)
	}

	mustFetch(t, options, resolved, files)
	mustFail(t, "the author expects another archive", options, fromURL(server.URL, withDigest(strings.Repeat("0", 64))), true, "instead of 0000")

	for name, content := range map[string][]byte{"other": packed(t, map[string]string{"b": "b"}), "no archive": []byte("not found"), "nothing": nil} {
		served = content
		mustFail(t, name+": the archive was replaced", options, resolved, true, "instead of "+resolved.HTTP.SHA256)
	}
}

// TestHTTPErrors checks each way in which a server can fail. The wait for a response must always be limited.
func TestHTTPErrors(t *testing.T) {
	release := make(chan struct{})
	content := packed(t, map[string]string{"a": strings.Repeat("x", 1000)})

	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })

	respond := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, hidden)
		}
	}

	for path, handler := range map[string]http.HandlerFunc{
		"/401": respond(http.StatusUnauthorized), "/404": respond(http.StatusNotFound), "/410": respond(http.StatusGone),
		"/429": respond(http.StatusTooManyRequests), "/204": respond(http.StatusNoContent), "/503": respond(http.StatusServiceUnavailable),
		"/silent": func(http.ResponseWriter, *http.Request) { <-release },
		"/slow": func(w http.ResponseWriter, _ *http.Request) {
			w.Write(content[:50])
			http.NewResponseController(w).Flush()
			<-release
		},
		"/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(content)))
			w.Write(content[:50])
		},
		"/announced": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1073741824") },
		"/endless": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		},
		"/outside":   func(w http.ResponseWriter, _ *http.Request) { w.Write(packed(t, map[string]string{"../a": "x"})) },
		"/truncated": func(w http.ResponseWriter, _ *http.Request) { w.Write(content[:50]) },
		"/loop":      http.RedirectHandler("/loop?token="+hidden, http.StatusFound).ServeHTTP,
		"/elsewhere": http.RedirectHandler("http://127.0.0.1:1/?token="+hidden, http.StatusFound).ServeHTTP,
	} {
		mux.HandleFunc(path, handler)
	}

	for path, test := range map[string]struct {
		reason   string
		terminal bool
		want     string
	}{
		"/401":       {"the Secret can be corrected", false, "rejects the credentials with status 401: correct the Secret"},
		"/404":       {"the file may be published later", false, "responds with status 404 Not Found"},
		"/429":       {"the server may recover", false, "responds with status 429"},
		"/503":       {"the server may recover", false, "responds with status 503"},
		"/410":       {"the file is gone", true, "responds with status 410 Gone"},
		"/204":       {"only 200 has content", true, "responds with status 204"},
		"/silent":    {"the time is bounded", false, "did not respond in time"},
		"/slow":      {"the time is bounded", false, "did not send the content in time"},
		"/cut":       {"the connection may have been lost", false, "unexpected EOF"},
		"/announced": {"a large file is not read", true, "has 1073741824 bytes; at most 1048576 are permitted"},
		"/endless":   {"the size is bounded", true, "the archive is larger than 1 MiB"},
		"/outside":   {"the archive is hostile", true, `the path "../a" is outside the folder`},
		"/truncated": {"the file itself is damaged", true, "unexpected EOF"},
		"/loop":      {"redirects are bounded", true, "more than 5 times"},
		"/elsewhere": {"a redirect may contain a secret", false, "cannot be reached"},
	} {
		t.Run(path[1:], func(t *testing.T) {
			options := source.Options{Timeout: time.Minute, Limits: archive.Limits{CompressedBytes: 1 << 20}}

			switch path {
			case "/slow":
				mustTimeOut(t, test.reason, options, fromURL(server.URL+path))

				return
			case "/silent":
				options.Timeout = time.Second
			}

			mustFail(t, test.reason, options, fromURL(server.URL+path), test.terminal, test.want)
		})
	}

	mustFail(t, "the status shows the address", source.Options{}, fromURL("https://user:"+hidden+"@example.com/x"), true,
		"contains credentials: move them to a Secret")
	mustFail(t, "it is no address of the web", source.Options{}, fromURL("file:///etc/passwd"), true, "source.http.url is not a valid address")
}

// TestHTTPCredentials checks that only the server receives the credentials, and no other host.
func TestHTTPCredentials(t *testing.T) {
	files := map[string]string{"a": "a"}
	leaked := false

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked = leaked || r.Header.Get("Authorization") != ""
		w.Write(packed(t, files))
	}))
	t.Cleanup(other.Close)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()

		switch {
		case user != "reader" || password != hidden:
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/other":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case r.URL.Path == "/same":
			http.Redirect(w, r, "/file", http.StatusFound)
		default:
			w.Write(packed(t, files))
		}
	}))
	t.Cleanup(server.Close)

	options := source.Options{Reader: login()}
	for _, path := range []string{"/file", "/same", "/other"} {
		mustFetch(t, options, fromURL(server.URL+path, withLogin("login")), files)
	}

	if leaked {
		t.Error("the credentials were sent to another host")
	}

	mustFail(t, "the Secret can be corrected", options, fromURL(server.URL, withLogin("wrong")), false, "rejects the credentials with status 403")
	mustFail(t, "no Secret is named", options, fromURL(server.URL), false, "rejects the credentials with status 403")
	mustFail(t, "the Secret may be created later", options, fromURL(server.URL, withLogin("missing")), false,
		"the Secret missing does not exist in the namespace bundles")

	options.Reader = cluster{secrets: map[string]map[string]string{"login": {"username": "reader", "token": hidden}}}
	mustFail(t, "the Secret can be corrected", options, fromURL(server.URL, withLogin("login")), false,
		"the Secret login has no key password; it must have the keys username, password")
}

// TestHTTPS checks that certificates are verified, and that a redirect cannot drop TLS.
func TestHTTPS(t *testing.T) {
	files := map[string]string{"a": "a"}
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(packed(t, files)) }))
	t.Cleanup(plain.Close)

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/plain" {
			http.Redirect(w, r, plain.URL, http.StatusFound)

			return
		}

		w.Write(packed(t, files))
	}))
	t.Cleanup(server.Close)

	insecure := func(from *v1alpha1.HTTPSource) { from.Auth.InsecureSkipVerify = true }

	mustFail(t, "the authority is unknown", source.Options{}, fromURL(server.URL), false, "certificate")
	mustFetch(t, source.Options{}, fromURL(server.URL, insecure), files)
	mustFail(t, "the content could be read on its way", source.Options{}, fromURL(server.URL+"/plain", insecure), true, "redirects to an address without TLS")
}
