package operatorserver

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// FuzzIntervention decodes arbitrary bodies of interventions. A rejected body gets 400 with a short text.
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
