package audit

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOriginator(t *testing.T) {
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

	for name, test := range map[string]struct {
		reason, header, platform, user string
	}{
		"CloudFoundry": {"Cloud Foundry names a user_id", "cloudfoundry " + encode(`{"user_id":"u","x":"y"}`), "cloudfoundry", "u"},
		"Kubernetes":   {"Kubernetes names a username", "kubernetes " + encode(`{"username":"k","uid":"1","groups":["a"]}`), "kubernetes", "k"},
		"NoUser":       {"a platform need not name a user", "x " + encode(`{"user_id":5}`), "x", ""},
		"Lines":        {"a text stays on one line", "x " + encode(`{"user_id":"a\nb\u0000\u202ec"}`), "x", "a b c"},
		"Long":         {"long names are cut", "x " + encode(`{"user_id":"`+strings.Repeat("ü", 300)+`"}`), "x", strings.Repeat("ü", 255)},
		"NoObject":     {"a header without a JSON object is treated as absent", "x " + encode(`[]`), "", ""},
		"Null":         {"null is not an object", "x " + encode(`null`), "", ""},
		"Rubbish":      {"an invalid header is treated as absent", "x rubbish!", "", ""},
		"Absent":       {"the header is optional", "", "", ""},
	} {
		if platform, user := originator(test.header); platform != test.platform || user != test.user {
			t.Errorf("%s: %s: want %q and %q, got %q and %q", name, test.reason, test.platform, test.user, platform, user)
		}
	}
}

func FuzzOriginator(f *testing.F) {
	f.Add("cloudfoundry eyJ1c2VyX2lkIjoiYmVydCJ9")
	f.Add("x")
	f.Fuzz(func(t *testing.T, header string) {
		platform, user := originator(header)
		for _, text := range []string{platform, user} {
			if strings.ContainsAny(text, "\x00\n\r\x1b") || len([]rune(text)) > maxText {
				t.Errorf("%q returns %q, which is unsafe in a log line", header, text)
			}
		}
	})
}

func TestActorOf(t *testing.T) {
	var got auditlog.Actor

	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	request.RemoteAddr = "10.0.0.1:4711"
	request.Header.Set("X-Broker-API-Request-Identity", "id\x01")
	request.Header.Set(OriginatingIdentity, "cloudfoundry eyJ1c2VyX2lkIjoiYmVydCJ9")

	Introduce(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = ActorOf(auth.NewContext(r.Context(), auth.Identity{Name: "cf", Means: auth.ByToken}))
	})).ServeHTTP(httptest.NewRecorder(), request)

	want := auditlog.Actor{User: "cf", Means: "token", Platform: "cloudfoundry", Originator: "bert", Address: "10.0.0.1", RequestID: "id"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if got.Name() != "bert" || (auditlog.Actor{User: "cf"}).Name() != "cf" {
		t.Error("Name does not return the platform's user, or the authenticated user if the platform names none")
	}
}
