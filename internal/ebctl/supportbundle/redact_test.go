package supportbundle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/supportbundle"
)

func TestText(t *testing.T) {
	t.Parallel()

	redactor := supportbundle.NewRedactor("login-password", "abc")
	redactor.Learn(map[string]any{"orderedBy": "alice", "by": map[string]any{"user": "svc.account-7", "address": "10.1.2.3"}})

	for _, test := range []struct{ reason, text, want string }{
		{"known secrets", "sent login-password", "sent ***"},
		{"a short known secret could be part of a word", "abcdef", "abcdef"},
		{"fields of JSON in a text", `{\"client_secret\": \"x1\", \"a\": \"b\"}`, `{\"client_secret\": \"***\", \"a\": \"b\"}`},
		{"a value in quotation marks may contain separators", `password="two words, and; more" next`, `password="***" next`},
		{"a value may contain a quotation mark", `{"clientSecret": "a\"b c", "x": "y"}`, `{"clientSecret": "***", "x": "y"}`},
		{"values of JSON in a text may contain separators", `{\"token\":\"a b, c\",\"x\":\"y\"}`, `{\"token\":\"***\",\"x\":\"y\"}`},
		{"apostrophes are quotation marks", "token: 'it has spaces' next", "token: '***' next"},
		{"an empty value is no secret", `password="" next`, `password="" next`},
		{"a password may contain the character before the host", "postgres://user:p@ss@host/db", "postgres://***@host/db"},
		{"fields of YAML", "client-key-data: LS0t\nserver: https://x", "client-key-data: ***\nserver: https://x"},
		{"an unfinished PEM block", "x -----BEGIN RSA PRIVATE KEY-----\nAA", "x ***"},
		{"a token", "Bearer abcdef1", "Bearer ***"},
		{"words", "basic authentication failed", "basic authentication failed"},
		{"a database", "postgres://user:pw@host/db", "postgres://***@host/db"},
		{"an address without credentials", "https://host:8080/path", "https://host:8080/path"},
		{"metrics", `environment_broker_upstream_calls_total{outcome="answered",system="director_tokens"} 3`, `environment_broker_upstream_calls_total{outcome="answered",system="director_tokens"} 3`},
		{"IDs and digests", "3f0e5a52-8a5c-4a4b-9b57-0d2f1a7f6a11 sha256:0123456789abcdef0123456789abcdef0123456789abcdef", "3f0e5a52-8a5c-4a4b-9b57-0d2f1a7f6a11 sha256:0123456789abcdef0123456789abcdef0123456789abcdef"},
		{"a plain word may have another meaning", "alice in wonderland, canceled by alice", "alice in wonderland, canceled by person-2"},
	} {
		if got := redactor.Text(test.text); got != test.want {
			t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
		}
	}

	if got := redactor.Text("svc.account-7 from 10.1.2.3"); got != "person-1 from address-1" {
		t.Errorf("people: got %q", got)
	}
}

// TestPeople redacts a document that names users in fields and in texts of the services.
func TestPeople(t *testing.T) {
	t.Parallel()

	document := map[string]any{
		"data": []any{
			map[string]any{"orderedBy": "anna", "appliedBy": "berta", "description": "Paused by clara; retried 2 operations"},
			map[string]any{"lastRun": map[string]any{"by": "dora"}},
			map[string]any{"by": map[string]any{"user": "emma", "address": "10.1.2.3"}},
		},
		"timeline": []any{
			map[string]any{"outcome": "accepted", "message": "retry of 3f0e5a52 by frieda: the quota: raised by greta"},
			map[string]any{"outcome": "accepted", "message": "retry of 3f0e5a52, again without Probe, Check, by Hanna Meier: more quota"},
			map[string]any{"outcome": "accepted", "message": "orchestration 1b6c2a54, ordered by ida"},
			map[string]any{"outcome": "accepted", "message": "expired by jana"},
			map[string]any{"outcome": "retried", "message": "as 3f0e5a52 by karla: more quota"},
			map[string]any{"outcome": "cancel requested", "message": "by lara: the region is gone"},
			map[string]any{"outcome": "cancel requested", "message": "by somebody: the region is gone"},
			map[string]any{"outcome": "retrying", "message": "rejected by policy: no quota"},
		},
	}

	redactor := supportbundle.NewRedactor()
	redactor.Learn(document)

	encoded, err := json.Marshal(redactor.Value(document))
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"anna", "berta", "clara", "dora", "emma", "frieda", "Hanna", "ida", "jana", "karla", "lara"} {
		if strings.Contains(string(encoded), name) {
			t.Errorf("%s remains in %s", name, encoded)
		}
	}

	for _, text := range []string{"by somebody: the region is gone", "rejected by policy: no quota"} {
		if !strings.Contains(string(encoded), text) {
			t.Errorf("%q is missing in %s", text, encoded)
		}
	}
}

// FuzzText checks that a known secret never remains, and that redacting the result again changes nothing.
func FuzzText(f *testing.F) {
	f.Add("login-password", "password=login-password")
	f.Add("a1b2c3", "-----BEGIN X-----a1b2c3")

	f.Fuzz(func(t *testing.T, known, text string) {
		inserted := "person-1 Bearer Basic ://@"
		if len(known) < 4 || strings.ContainsAny(known, "*") || strings.Contains(inserted, known) {
			t.Skip()
		}

		if got := supportbundle.NewRedactor(known).Text(text); strings.Contains(got, known) {
			t.Errorf("%q remains in %q", known, got)
		}
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()

	bundle := supportbundle.New(supportbundle.NewRedactor(), 20)
	text := func(value string) func(context.Context) (any, error) {
		return func(context.Context) (any, error) { return value, nil }
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	if !bundle.Add(t.Context(), "small.txt", "a small file", text("0123456789")) {
		t.Error("a file within the limit is included")
	}

	for _, rejected := range []struct {
		reason string
		ctx    context.Context //nolint:containedctx // a table
		get    func(context.Context) (any, error)
	}{
		{"the archive would be too large: the document has 11 bytes, but only 10 are left", t.Context(), text("01234567890")},
		{"the time limit was reached", ended, text("")},
		{"the token: *** is wrong", t.Context(), func(context.Context) (any, error) { return nil, errors.New("the token: x7 is wrong") }},
	} {
		if bundle.Add(rejected.ctx, rejected.reason, "", rejected.get) {
			t.Errorf("included in spite of %s", rejected.reason)
		}
	}

	var archive bytes.Buffer

	manifest, err := bundle.Write(&archive, "folder", supportbundle.Manifest{CreatedAt: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}

	if len(manifest.Files) != 1 || manifest.Files[0].Bytes != 10 || len(manifest.Missing) != 3 {
		t.Fatalf("got the manifest %+v", manifest)
	}

	for i, reason := range []string{"the archive would be too large: the document has 11 bytes, but only 10 are left", "the time limit was reached", "the token: *** is wrong"} {
		if manifest.Missing[i].Reason != reason {
			t.Errorf("got %q, want %q", manifest.Missing[i].Reason, reason)
		}
	}
}
