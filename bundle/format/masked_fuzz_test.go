package format_test

import (
	"testing"
	"testing/fstest"

	"github.com/environment-broker/environment-broker/bundle/format"
)

// FuzzMasked reads arbitrary content of masked.json, which must result in a list of texts or an error.
func FuzzMasked(f *testing.F) {
	f.Add(`["a", "b"]`)
	f.Add(`{"a": "b"}`)

	f.Fuzz(func(t *testing.T, list string) {
		texts, err := format.Masked(fstest.MapFS{"metadata/masked.json": {Data: []byte(list)}}, nil)
		if err != nil && len(texts) > 0 {
			t.Errorf("got %q with an error", texts)
		}
	})
}
