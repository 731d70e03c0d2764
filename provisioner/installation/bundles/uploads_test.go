package bundles_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation/bundles"
)

// contentServer is a content server with one handler. It counts requests.
type contentServer struct {
	*httptest.Server

	calls atomic.Int32
}

func newContentServer(t *testing.T, handle http.HandlerFunc) *contentServer {
	t.Helper()

	s := &contentServer{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		handle(w, r)
	}))
	t.Cleanup(s.Close)

	return s
}

// uploads returns a client of the server.
func (s *contentServer) uploads(t *testing.T, timeout time.Duration) *bundles.Uploads {
	t.Helper()

	token, authority := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "ca.pem")
	for path, content := range map[string][]byte{
		token: []byte("the-token"), authority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	uploads, err := bundles.NewUploads(bundles.UploadsOptions{Address: s.URL, TokenFile: token, CAFile: authority, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}

	return uploads
}

// TestUploadStatuses checks for each status whether the Provisioner tries again, and the texts for users and operators.
func TestUploadStatuses(t *testing.T) {
	const waits = "waiting for the bundle provisioner to accept the content"

	for status, test := range map[int]struct {
		reason  string
		waiting string
		kind    failure.Kind
		text    string
		calls   int32
	}{
		http.StatusCreated:               {reason: "stored", calls: 1},
		http.StatusNoContent:             {reason: "the same content is there", calls: 1},
		http.StatusServiceUnavailable:    {reason: "another replica accepts uploads", waiting: waits, calls: 3},
		http.StatusNotFound:              {reason: "the server does not know the new Bundle yet", waiting: waits, calls: 3},
		http.StatusTooManyRequests:       {reason: "the server wants fewer requests", waiting: waits, calls: 1},
		http.StatusUnauthorized:          {reason: "operators correct credentials", kind: failure.Transient, text: "bundle-uploader", calls: 1},
		http.StatusForbidden:             {reason: "operators correct roles", kind: failure.Transient, text: "bundle-uploader", calls: 1},
		http.StatusRequestTimeout:        {reason: "the server did not wait", kind: failure.Transient, text: "408", calls: 1},
		http.StatusInternalServerError:   {reason: "the server may recover", kind: failure.Transient, text: "500", calls: 1},
		http.StatusBadGateway:            {reason: "the server may come back", kind: failure.Transient, text: "502", calls: 1},
		http.StatusGatewayTimeout:        {reason: "the server may come back", kind: failure.Transient, text: "504", calls: 1},
		http.StatusInsufficientStorage:   {reason: "operators free space", kind: failure.Transient, text: "507", calls: 1},
		http.StatusConflict:              {reason: "the Bundle has other content", kind: failure.Conflict, text: "must delete this Bundle", calls: 1},
		http.StatusRequestEntityTooLarge: {reason: "the component stays too large", kind: failure.Permanent, text: "APP_LIMITS_COMPRESSED_BYTES", calls: 1},
		http.StatusOK:                    {reason: "this is no content server", kind: failure.Permanent, text: "200", calls: 1},
		http.StatusFound:                 {reason: "redirects are not followed", kind: failure.Permanent, text: "302", calls: 1},
		http.StatusBadRequest:            {reason: "the server will reject it again", kind: failure.Permanent, text: "400 Bad Request", calls: 1},
		http.StatusMethodNotAllowed:      {reason: "this is no content server", kind: failure.Permanent, text: "405", calls: 1},
		http.StatusUnsupportedMediaType:  {reason: "the server will reject it again", kind: failure.Permanent, text: "415", calls: 1},
		http.StatusUnprocessableEntity:   {reason: "the server will reject it again", kind: failure.Permanent, text: "422", calls: 1},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			server := newContentServer(t, func(w http.ResponseWriter, r *http.Request) {
				content, err := io.ReadAll(r.Body)
				if err != nil || string(content) != "archive" || r.Method != http.MethodPut || r.URL.Path != "/uploads/shop-1.tgz" ||
					r.Header.Get("Authorization") != "Bearer the-token" {
					t.Errorf("got %s %s with %q, %v", r.Method, r.URL.Path, content, err)
				}

				w.Header().Set("Location", "/uploads/other.tgz")
				w.Header().Set("Retry-After", "1")

				if status != http.StatusNoContent {
					http.Error(w, "the server says so", status)
				} else {
					w.WriteHeader(status)
				}
			})

			waiting, err := server.uploads(t, 0).Upload(t.Context(), "shop-1", []byte("archive"))
			if waiting != test.waiting || (err == nil) != (test.kind == "") || err != nil && !failure.Is(err, test.kind) || server.calls.Load() != test.calls {
				t.Errorf("%s: %q, %v (%s) after %d calls, want %q, %s after %d", test.reason, waiting, err, failure.KindOf(err), server.calls.Load(),
					test.waiting, test.kind, test.calls)
			}

			if err == nil {
				return
			}

			got := failure.Of(err)
			if !strings.Contains(got.Text, test.text) || strings.Contains(got.Text, "the server says so") || got.Detail != "the server says so" {
				t.Errorf("%s: the text is %q, the detail %q", test.reason, got.Text, got.Detail)
			}
		})
	}
}

// TestUploadsToBrokenServers checks that errors of the connection are transient, and that the status suffices if the body of a
// response is cut off or endless.
func TestUploadsToBrokenServers(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		handle func(http.ResponseWriter, *http.Request)
		kind   failure.Kind
	}{
		"cut connection": {"the server may have crashed", func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)

				return
			}

			_ = connection.Close()
		}, failure.Transient},
		"time-out": {"the server may be frozen", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, failure.Transient},
		"cut body": {"the status counts", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusCreated)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, ""},
		"endless body": {"the status counts, and only its begin is read", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)

			for line := []byte(strings.Repeat("x", 1<<10)); r.Context().Err() == nil; {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}, failure.Permanent},
	} {
		t.Run(name, func(t *testing.T) {
			server := newContentServer(t, test.handle)

			timeout := time.Minute
			if name == "time-out" {
				timeout = 100 * time.Millisecond
			}

			waiting, err := server.uploads(t, timeout).Upload(t.Context(), "shop-1", []byte("archive"))
			if waiting != "" || (err == nil) != (test.kind == "") || err != nil && !failure.Is(err, test.kind) {
				t.Fatalf("%s: %q, %v", test.reason, waiting, err)
			}

			if err != nil && (strings.Contains(err.Error(), server.URL) || len(failure.Of(err).Detail) > 1<<10) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
