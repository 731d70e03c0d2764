package storage_test

import (
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// FuzzCursor decodes arbitrary cursors of clients. A valid one keeps its meaning when it is encoded again, and the database can store
// its ID.
func FuzzCursor(f *testing.F) {
	f.Add(storage.Cursor{At: time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC), ID: "an ID with spaces"}.String())
	f.Add("")
	f.Add("?")

	f.Fuzz(func(t *testing.T, text string) {
		cursor, valid := storage.ParseCursor(text)
		if !valid {
			return
		}

		again, valid := storage.ParseCursor(cursor.String())
		if !valid && cursor.At.UTC().Year() >= 0 && cursor.At.UTC().Year() <= 9999 || valid && (again.ID != cursor.ID || !again.At.Equal(cursor.At)) {
			t.Errorf("%q is %+v, and then %+v", text, cursor, again)
		}

		if !storage.IsText(cursor.ID) {
			t.Errorf("the ID %q cannot be stored", cursor.ID)
		}
	})
}
