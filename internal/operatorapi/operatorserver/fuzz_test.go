package operatorserver

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// FuzzIntervention checks that ReadStrictly rejects an invalid body of an intervention with status 400
// and a short text.
func FuzzIntervention(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{}`, `{"reason":"x"}`, `{"reason":"x","step":"y"}`, `{"reason":"x"}}`, `{"reason":"x"} {}`, `{"Reason":"x"}`, `{"reason":1}`, `null`, `[]`,
		`{"reason":"a","reason":"b"}`, `{"unknown":1}`, `{"reason":1e999000}`, strings.Repeat("[", 1000), "\xff",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, body string) {
		var read operatorapi.Intervention

		err := ReadStrictly(strings.NewReader(body), &read, textIntervention)
		if err == nil {
			if trimmed := strings.TrimSpace(body); trimmed != "" && trimmed != "null" && !strings.HasSuffix(trimmed, "}") {
				t.Errorf("%q is accepted", body)
			}

			return
		}

		if refusal := httpserver.RefusalOf(err); refusal.Status != 400 || len(refusal.Description) > 1000 {
			t.Errorf("%q: %d %s", body, refusal.Status, refusal.Description)
		}
	})
}

// FuzzQuery parses arbitrary queries of lists. A rejected query gets 400 with a short text, and accepted values can be stored.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"", "page=2&page_size=10", "page=-1", "page=999999999999999999999", "cursor=x&page_size=0", "account=a&account=b", "%zz", "unknown=1", "account=%00",
		"since=2026-01-02T03:04:05Z", ";", strings.Repeat("a", 1000) + "=1", "account=%ff", "total=maybe",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, raw string) {
		query, err := ReadQuery(raw, "page", "page_size", "cursor", "total", "account", "since")
		if err == nil {
			for name, values := range query.Values {
				if len(values) != 1 || strings.ContainsRune(values[0], 0) {
					t.Errorf("%q: accepted %s with %q", raw, name, values)
				}
			}

			return
		}

		if refusal := httpserver.RefusalOf(err); refusal.Status != 400 || len(refusal.Description) > 1000+6*len(raw) {
			t.Errorf("%q: %d %s", raw, refusal.Status, refusal.Description)
		}
	})
}
