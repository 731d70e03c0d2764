package environment_test

import (
	"encoding/json"
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// FuzzData checks that data which can be decoded can also be stored, and does not change when it is read and stored again.
func FuzzData(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `{"version":2}`, `{"instance":{"id":"i","request":{"context":{"a":1}}},"change":{"plan_id":"p"}}`, `[]`, `{"version":1e999}`} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		var data, again environment.Data
		if json.Unmarshal(text, &data) != nil {
			return
		}

		stored, err := json.Marshal(data)
		if err == nil {
			err = json.Unmarshal(stored, &again)
		}

		if err != nil {
			t.Fatalf("%q cannot be stored again: %v", text, err)
		}

		if second, err := json.Marshal(again); err != nil || string(second) != string(stored) {
			t.Errorf("%q changes when it is stored again:\n%s\n%s, %v", text, stored, second, err)
		}
	})
}
