package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/ebctl"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
)

// trouble is a way in which the road to the Provisioner is broken.
type trouble func(w http.ResponseWriter, r *http.Request)

// road leads to the Provisioner and can be broken.
type road struct {
	broken atomic.Pointer[trouble]
	target http.Handler
}

func (r *road) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if broken := r.broken.Load(); broken != nil {
		(*broken)(w, request)

		return
	}

	r.target.ServeHTTP(w, request)
}

// detour leads to the Provisioner over the road.
func (r *road) detour(t *testing.T) func(provisionerURL string) string {
	t.Helper()

	return func(provisionerURL string) string {
		target, err := url.Parse(provisionerURL)
		if err != nil {
			t.Fatal(err)
		}

		r.target = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
		server := httptest.NewServer(r)
		t.Cleanup(server.Close)

		return server.URL + target.Path
	}
}

func down(w http.ResponseWriter, _ *http.Request) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

func slow(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then does the server see that the client has left

	<-r.Context().Done()
}

func rubbish(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("<html>no GraphQL here</html>"))
}

// TestProvisionerInTrouble has the Provisioner down, slow, or answering rubbish: that delays the operation, is told to whoever asks
// why, and loses nothing.
func TestProvisionerInTrouble(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		broken trouble
		want   string
	}{
		"down":    {"a connection that breaks", down, "provisioner cannot be reached"},
		"slow":    {"an answer that does not come", slow, "provisioner did not answer within"},
		"rubbish": {"an answer that is no answer", rubbish, "no GraphQL"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			road := &road{}
			road.broken.Store(&c.broken)

			l := startWith(t, onSQLite, 100*time.Millisecond, road.detour(t), func(settings *broker.Config, _ *provisioner.Config) {
				settings.Provisioner.Timeout = 2 * time.Second
			})
			operation := l.create("troubled", planAWS)

			var told string

			l.until("an explanation", func() bool {
				told = explain(t, l.platform, operation)

				return strings.Contains(told, c.want)
			})

			if !strings.Contains(told, "Create_Runtime_Without_Kyma") {
				t.Errorf("%s: the step is not named:\n%s", c.reason, told)
			}

			road.broken.Store(nil)
			l.succeeded("troubled")

			if shoots := l.shoots(); len(shoots) != 1 {
				t.Errorf("%s: there are %d Shoots, want one", c.reason, len(shoots))
			}

			l.remove("troubled", planAWS)
			l.gone("troubled")
		})
	}
}

// explain is `ebctl operation explain`.
func explain(t *testing.T, p platform, operation string) string {
	t.Helper()

	var output, problems bytes.Buffer

	code := ebctl.App{
		Out: &output, Err: &problems, Environment: func(string) string { return "" }, Clock: clock.RealClock{},
	}.Run(t.Context(), []string{
		"operation", "explain", operation, "--address", p.url, "--username", p.user, "--password", p.password,
	})
	if code != 0 {
		t.Fatalf("ebctl ended with %d: %s", code, problems.String())
	}

	return output.String()
}
