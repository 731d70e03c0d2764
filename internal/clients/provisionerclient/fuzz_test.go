package provisionerclient

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// FuzzGraphQLError decodes arbitrary errors of a Provisioner. Each becomes an error with a kind and a short printable text.
func FuzzGraphQLError(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"message":"no","path":["a0",1],"extensions":{"error_code":"400","error_reason":"NotFound"}}`, `{"extensions":[]}`, `{"path":{}}`,
		`{"message":"cannot query field operationChanges"}`, `{"extensions":{"code":"GRAPHQL_PARSE_FAILED"}}`, `{"message":"operation in progress"}`,
		`{"message":"a\u0000\u001b[31m\u202e","extensions":{"error_code":1e999,"error_component":{},"error_reason":"\u0000"}}`, `{"path":[null]}`,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		var problem graphqlError
		if json.Unmarshal(text, &problem) != nil {
			return
		}

		_ = problem.Path.alias()

		found := failure.Of((&call{action: "order the runtime"}).refused(&problem))
		if found.Kind == "" || found.Text == "" || len(found.Text) > 4000 || strings.ContainsFunc(found.Text, unicode.IsControl) {
			t.Errorf("%q becomes %q, %q", text, found.Kind, found.Text)
		}
	})
}

// FuzzClientData decodes arbitrary client data of runtimes, which other clients may have set. An accepted instance has its IDs.
func FuzzClientData(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", `{"ID":"i","ShootName":"s"}`, `{"ID":1}`, `{"ID":"i","ShootName":"s","Request":{"Parameters":{"a":[1]}}}`, "["} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		instance, err := ParseClientData(text)
		if err == nil && (instance.ID == "" || instance.ShootName == "") {
			t.Errorf("%q is accepted without an ID", text)
		}

		if err != nil && failure.Of(err).Text == "" {
			t.Errorf("%q: the error has no text", text)
		}
	})
}
