package director

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// FuzzProblem decodes arbitrary errors of Director. Each becomes an error with a kind and a short printable text.
func FuzzProblem(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"message":"no","extensions":{"error_code":20,"error":"NotFound"}}`, `{"extensions":[]}`, `{"extensions":{"error_code":"26","error":1}}`,
		`{"message":"a\u0000\u001b[31m","extensions":{"error_code":1e999,"error":"\u0000"}}`,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		var decoded problem
		if json.Unmarshal(text, &decoded) != nil {
			return
		}

		found := failure.Of((&call{action: "register the runtime"}).explain(&decoded))
		if found.Kind == "" || found.Text == "" || len(found.Text) > 4000 || strings.ContainsFunc(found.Text+found.Reason, unicode.IsControl) {
			t.Errorf("%q becomes %q, %q, %q", text, found.Kind, found.Text, found.Reason)
		}
	})
}
