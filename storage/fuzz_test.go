package storage_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/storage"
)

// FuzzCursor decodes arbitrary cursors from clients. A valid cursor must keep its meaning when it is encoded again, and the database
// must be able to store its ID.
func FuzzCursor(f *testing.F) {
	f.Add(storage.Cursor{At: time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC), ID: "an ID with spaces"}.String())
	f.Add(storage.Cursor{Sort: "-name", Key: "a name", ID: "id"}.String())
	f.Add("")
	f.Add("?")

	f.Fuzz(func(t *testing.T, text string) {
		cursor, valid := storage.ParseCursor(text)
		if !valid {
			return
		}

		again, valid := storage.ParseCursor(cursor.String())
		if !valid && cursor.At.UTC().Year() >= 0 && cursor.At.UTC().Year() <= 9999 || valid && (again.ID != cursor.ID || again.Sort != cursor.Sort || again.Key != cursor.Key || !again.At.Equal(cursor.At)) {
			t.Errorf("%q is %+v, and then %+v", text, cursor, again)
		}

		if !storage.IsText(cursor.ID) || !storage.IsText(cursor.Key) {
			t.Errorf("the ID %q or the key %q cannot be stored", cursor.ID, cursor.Key)
		}
	})
}

// FuzzSealedColumns cuts the columns from arbitrary sealed objects, and adds columns. Both must be reversible.
func FuzzSealedColumns(f *testing.F) {
	for _, seed := range []string{`{}`, `{"columns":{}}`, `{"columns":{"a":"b"},"c":1}`, `{"c":1,"columns":{"a":"b"}}`, `{"columns":null}`, ` {"a":1}`, `{ }`, `[]`, ``, `{"columns":{"a":"\u003c"}}`} {
		f.Add([]byte(seed), "a\"b")
	}

	f.Fuzz(func(t *testing.T, object []byte, value string) {
		if cut, bound, err := storage.CutBound(object); err == nil && bound != nil && !json.Valid(cut) {
			t.Errorf("%q becomes %q", object, cut)
		}

		var fields map[string]json.RawMessage
		if json.Unmarshal(object, &fields) != nil || !utf8.ValidString(value) {
			return
		}

		for name := range fields {
			if strings.EqualFold(name, "columns") {
				return // no store has a field with this name
			}
		}

		sealed, err := storage.Bound{"column": value}.Prepend(object)
		if err != nil {
			return
		}

		cut, bound, err := storage.CutBound(sealed)
		if want := bytes.TrimSpace(object); err != nil || !bytes.Equal(cut, want) && len(fields) > 0 || bound["column"] != value {
			t.Errorf("%q is sealed as %q, and read as %q with %v, %v", object, sealed, cut, bound, err)
		}
	})
}
