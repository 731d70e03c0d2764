package storage

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// timeLayout is the one form in which times are stored: UTC, microseconds, as text it sorts like the time.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// Time is a time as the databases store it. The zero time is NULL.
type Time struct{ time.Time }

// At returns the time as it will be read back: UTC, to the microsecond.
func At(moment time.Time) Time {
	return Time{moment.UTC().Truncate(time.Microsecond)}
}

// Value returns the stored form.
func (t Time) Value() (driver.Value, error) {
	if t.IsZero() {
		return nil, nil
	}

	return t.UTC().Format(timeLayout), nil
}

// Scan reads the stored form: text from SQLite, a time from PostgreSQL.
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
		return fmt.Errorf("reading a stored time: it is a %T", source)
	}

	return nil
}
