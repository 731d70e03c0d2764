package auditlog_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// FuzzEntry decodes arbitrary stored entries. A decoded entry can be encoded and decoded again.
func FuzzEntry(f *testing.F) {
	encoded, err := auditlog.Entry{Action: "a", Before: auditlog.Fields{"x": 1}, By: auditlog.Actor{User: "u"}}.Encode()
	if err != nil {
		f.Fatal(err)
	}

	f.Add(encoded)
	f.Add("")
	f.Add(`{"before":{"a":1e999}}`)
	f.Add("null")

	f.Fuzz(func(t *testing.T, text string) {
		var entry, again auditlog.Entry
		if entry.Decode(text) != nil {
			return
		}

		encoded, err := entry.Encode()
		if err == nil {
			err = again.Decode(encoded)
		}

		if err != nil {
			t.Errorf("%q decodes to %+v, which cannot be stored: %v", text, entry, err)
		}
	})
}
