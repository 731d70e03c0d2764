package storage

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// Cursor is the sort key of the last entry on a page. The next page starts after this key, so entries that are added in the
// meantime do not shift the page. Most lists have a single order: they are sorted by time and then by ID, newest first.
type Cursor struct {
	// Sort names the order. It is empty for the usual order, by time and then by ID. Key is the value by which entries are sorted
	// first, before At and ID. It is empty if there is no such value.
	Sort string    `json:"sort"`
	Key  string    `json:"key"`
	At   time.Time `json:"at"`
	ID   string    `json:"id"`
}

// String encodes the cursor for clients, which must not depend on the encoding. It returns an empty string if Sort is set and the
// year of At has more than four digits.
func (c Cursor) String() string {
	c.At = c.At.UTC()
	if c.Sort == "" {
		return base64.RawURLEncoding.EncodeToString([]byte(c.At.Format(time.RFC3339Nano) + " " + c.ID))
	}

	encoded, err := json.Marshal(c)
	if err != nil {
		return ""
	}

	return base64.RawURLEncoding.EncodeToString(encoded)
}

// ParseCursor decodes a cursor that a client sent, and reports whether it is valid.
func ParseCursor(text string) (cursor Cursor, valid bool) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Cursor{}, false
	}

	if len(decoded) > 0 && decoded[0] == '{' {
		err = json.Unmarshal(decoded, &cursor)

		return cursor, err == nil && cursor.Sort != "" && IsText(cursor.Key) && IsText(cursor.ID) && IsTime(cursor.At)
	}

	moment, id, _ := strings.Cut(string(decoded), " ")
	at, err := time.Parse(time.RFC3339Nano, moment)

	return Cursor{At: at, ID: id}, err == nil && IsText(id) && IsTime(at)
}

// IsTime reports whether both databases can compare the value with stored times: PostgreSQL does not know the year 0, and SQLite
// compares the text of times, in which a year has four digits. Callers must reject all other values before they use them in a query.
func IsTime(value time.Time) bool {
	const lastYear = 9999

	year := value.UTC().Year()

	return year > 0 && year <= lastYear
}

// IsText reports whether PostgreSQL can store and compare the value: valid UTF-8 without NUL. Callers must reject all other
// values before they use them in a query.
func IsText(value string) bool {
	return !strings.ContainsRune(value, 0) && strings.ToValidUTF8(value, "") == value
}
