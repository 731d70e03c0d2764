package storage

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"

	"github.com/lib/pq"
)

// timeLayout is the format of times that are stored in SQLite. They are in UTC with microseconds, so sorting the strings sorts
// them chronologically. PostgreSQL has the same precision.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// Time is the value of a time column. The zero time is stored as NULL, and NULL is read as the zero time.
type Time struct{ time.Time }

// At returns the time as the database returns it: in UTC, truncated to microseconds. Arguments that are compared with a stored
// time must also pass through At. Otherwise they do not equal a time that was stored from the same value.
func At(moment time.Time) Time {
	return Time{moment.UTC().Truncate(time.Microsecond)}
}

// Array returns a slice as a single argument of a PostgreSQL statement. The placeholder needs a cast, such as ?::text[].
func Array[T any](values []T) any { return pq.Array(values) }

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) {
	if t.IsZero() {
		return nil, nil
	}

	return t.UTC().Format(timeLayout), nil
}

// Scan implements sql.Scanner. It accepts the strings that SQLite returns and the times that PostgreSQL returns.
func (t *Time) Scan(source any) error {
	switch value := source.(type) {
	case nil:
		*t = Time{}
	case time.Time:
		*t = At(value)
	case string:
		moment, err := time.Parse(timeLayout, value)
		if err != nil {
			return fmt.Errorf("reading a stored time: %w", err)
		}

		*t = Time{moment}
	default:
		return fmt.Errorf("reading a stored time: unexpected type %T", source)
	}

	return nil
}

// SealedColumn is a column that contains envelopes from package secret. Package keyrotation re-encrypts such columns.
type SealedColumn struct {
	// Table is the name of the table, which must have a primary key named id.
	Table, Column string
	// Place returns the additional data that binds an envelope to its row and column, so an envelope that is copied elsewhere cannot
	// be decrypted. The result for an ID must never change, because stored envelopes would become unreadable.
	Place func(id string) string
	// Bound names the columns whose values the store seals together with the secret part of a row. It is nil if there are none. Key
	// rotation adds these values to rows that older releases sealed without them, except for empty columns, which an older replica
	// may still fill.
	Bound []string
}

// Bound maps the names of columns to the values that determine which tenant a row's cluster belongs to. A store seals the values
// together with the secret part of the row, and compares them with the columns when it reads the row. Thus, somebody who can
// change the columns but has no key cannot assign the cluster of one tenant to another.
type Bound map[string]string

// boundField is the name of the JSON field in which a sealed object stores its Bound.
const boundField = "columns"

// BoundOf returns the column values that are sealed in a JSON object, or nil if an older release sealed the object without them.
func BoundOf(object []byte) (Bound, error) {
	var sealed struct {
		Columns Bound `json:"columns"`
	}

	err := json.Unmarshal(object, &sealed)

	return sealed.Columns, failure.While(err, "decoding a sealed value")
}

// Prepend adds the values to a JSON object as its first field, which older releases ignore.
func (b Bound) Prepend(object []byte) ([]byte, error) {
	first, err := json.Marshal(map[string]Bound{boundField: b})
	if err != nil {
		return nil, fmt.Errorf("encoding sealed columns: %w", err)
	}

	object = bytes.TrimSpace(object)

	switch {
	case !bytes.HasPrefix(object, []byte("{")):
		return nil, errors.New("encoding sealed columns: the value is not a JSON object")
	case bytes.HasPrefix(bytes.TrimSpace(object[1:]), []byte("}")):
		return first, nil
	default:
		return append(append(first[:len(first)-1], ','), object[1:]...), nil
	}
}

// CutBound undoes Prepend: it returns the JSON object without the added field, and the values in this field. It returns any other
// object unchanged.
func CutBound(object []byte) ([]byte, Bound, error) {
	bound, err := BoundOf(object)
	if err != nil || bound == nil {
		return object, nil, err
	}

	first, err := bound.Prepend([]byte("{}"))
	if err != nil {
		return nil, nil, err
	}

	rest, found := bytes.CutPrefix(object, first[:len(first)-1])

	switch {
	case !found:
		return nil, nil, errors.New("decoding a sealed value: its columns are not its first field")
	case bytes.HasPrefix(rest, []byte(",")):
		return append([]byte("{"), rest[1:]...), bound, nil
	default:
		return []byte("{}"), bound, nil
	}
}

// ErrChangedColumn reports that a column differs from its sealed value: somebody changed the row without using the service.
var ErrChangedColumn = errors.New("a column was changed outside of the service; restore the row from a backup")

// Check compares the sealed values with the values of the row. It accepts columns without a sealed value, because older releases
// do not seal them. The error names the columns that differ, and wraps ErrChangedColumn.
func (b Bound) Check(row Bound) error {
	var changed []string

	for column, sealed := range b {
		if present, known := row[column]; known && present != sealed {
			changed = append(changed, column)
		}
	}

	if len(changed) == 0 {
		return nil
	}

	slices.Sort(changed)

	return fmt.Errorf("%s: %w", strings.Join(changed, ", "), ErrChangedColumn)
}
