package ebctl

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzParameters checks that any accepted value of --parameters can be encoded as JSON, even after an invalid --set, and that the
// error about an invalid value is a single line.
func FuzzParameters(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":1}`, "b=2"},
		{"a: 1", "a.b=c"},
		{"a: &x [1]\nb: *x", "a=[1, 2]"},
		{"- a", "=x"},
		{"", "a..b=1"},
		{`{"a":1,"a":2}`, "a={b: c}"},
		{"null", "x=null"},
		{`{"a":1e999000}`, "a=1e999000"},
		{"a: [" + strings.Repeat("[", 50), "a"},
		{"{", "a=\x00"},
	} {
		f.Add(seed[0], seed[1])
	}

	f.Fuzz(func(t *testing.T, text, assignment string) {
		object, err := decodeObject([]byte(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %q", err)
			}

			return
		}

		if object == nil {
			t.Fatalf("%q is accepted without an object", text)
		}

		_ = assign(object, assignment) // an error leaves a part of the assignment, which must be encodable, too

		if _, err := json.Marshal(object); err != nil {
			t.Errorf("%q with %q cannot be encoded: %v", text, assignment, err)
		}
	})
}
