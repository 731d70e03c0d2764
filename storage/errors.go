package storage

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/lib/pq"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrNotFound reports that no row matches a query. Stores wrap it in an error that identifies the missing object.
var ErrNotFound = errors.New("not found")

// uniqueViolation is the SQLSTATE for a duplicate key.
const uniqueViolation = "23505"

// IsDuplicate reports whether err means that a primary key or a unique index was violated. On PostgreSQL, the transaction cannot
// continue after such an error.
func IsDuplicate(err error) bool {
	if pqErr, ok := errors.AsType[*pq.Error](err); ok {
		return pqErr.Code == uniqueViolation
	}

	if sqliteErr, ok := errors.AsType[*sqlite.Error](err); ok {
		return sqliteErr.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || sqliteErr.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}

	return false
}

// IsDuplicateOf reports whether err means that the UNIQUE constraint of the given column was violated. On PostgreSQL, the
// constraint must have the default name, TABLE_COLUMN_key.
func IsDuplicateOf(err error, table, column string) bool {
	if pqErr, ok := errors.AsType[*pq.Error](err); ok {
		return pqErr.Code == uniqueViolation && pqErr.Constraint == table+"_"+column+"_key"
	}

	return IsDuplicate(err) && strings.Contains(err.Error(), table+"."+column)
}

// IsDeadlock reports whether PostgreSQL has aborted the transaction because of a deadlock or a serialization failure. The caller
// may run the same transaction again. SQLite has only one writer and therefore no such errors.
func IsDeadlock(err error) bool {
	pqErr, ok := errors.AsType[*pq.Error](err)

	return ok && strings.HasPrefix(string(pqErr.Code), "40")
}

// callError marks an error as coming from a call to the database. Without the mark, IsUnavailable could mistake a lost connection
// or a timeout of another system for one of the database.
type callError struct{ error }

// Unwrap returns the driver's error.
func (e callError) Unwrap() error { return e.error }

// IsUnavailable reports whether err means that the database is temporarily unavailable, so that the same call may succeed later.
// Examples are a lost connection, a full disk, a deadlock and an exceeded deadline. It returns false for such errors from other
// systems, and for a canceled context, because the caller then no longer wants a result.
func IsUnavailable(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}

	if pqErr, ok := errors.AsType[*pq.Error](err); ok {
		return unavailableCode(string(pqErr.Code))
	}

	if sqliteErr, ok := errors.AsType[*sqlite.Error](err); ok {
		const primary = 0xff // the lowest byte of an extended code is the primary code

		switch sqliteErr.Code() & primary {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
			return true
		}

		return false
	}

	for _, passing := range []error{errStandby, errNoPrimary, errFormerPrimary, errOtherCluster, errUnreplicated, driver.ErrBadConn, sql.ErrConnDone} {
		if errors.Is(err, passing) {
			return true
		}
	}

	call, ours := errors.AsType[callError](err)
	if !ours {
		return false
	}

	_, network := errors.AsType[net.Error](call.error)

	return network || errors.Is(call, io.EOF) || errors.Is(call, io.ErrUnexpectedEOF)
}

// unavailableCode reports whether a SQLSTATE stands for a temporary error. The list contains prefixes of codes as well as single
// codes, see https://www.postgresql.org/docs/current/errcodes-appendix.html.
func unavailableCode(code string) bool {
	// In order: connection; resources; operator intervention; timeouts of an idle transaction, a transaction, a lock and a
	// statement; a read-only server; serialization failures including deadlocks.
	for _, class := range []string{"08", "53", "57P", "25P03", "25P04", "55P03", "57014", codeReadOnly, "40"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}

	return false
}
