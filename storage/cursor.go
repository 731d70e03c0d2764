package storage

import (
	"encoding/base64"
	"strings"
	"time"
)

// Cursor is the sort key of the last entry of a page. Lists are sorted by time and then by ID, newest first, so entries that are
// added while a client reads the pages do not shift the pages after a cursor.
type Cursor struct {
	At time.Time
	ID string
}

// String encodes the cursor for clients, which must not depend on its form.
func (c Cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(c.At.UTC().Format(time.RFC3339Nano) + " " + c.ID))
}

// ParseCursor decodes a cursor of a client, and reports whether it is valid.
func ParseCursor(text string) (cursor Cursor, valid bool) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Cursor{}, false
	}

	moment, id, _ := strings.Cut(string(decoded), " ")
	at, err := time.Parse(time.RFC3339Nano, moment)

	return Cursor{At: at, ID: id}, err == nil && IsText(id)
}

// IsText reports whether PostgreSQL can store and compare the value: valid UTF-8 without NUL. Callers must reject all other
// values before they use them in a query.
func IsText(value string) bool {
	return !strings.ContainsRune(value, 0) && strings.ToValidUTF8(value, "") == value
}
