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

// IsUnavailable reports whether err comes from a database that does not answer for now: the same call may succeed later.
func IsUnavailable(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false // nobody waits for the answer
	}

	if known, ok := errors.AsType[*pq.Error](err); ok {
		return unavailableCode(string(known.Code))
	}

	if known, ok := errors.AsType[*sqlite.Error](err); ok {
		const primary = 0xff // extended codes hold the primary one in their lowest byte

		switch known.Code() & primary {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
			return true
		}

		return false
	}

	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}

	for _, passing := range []error{errStandby, driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, passing) {
			return true
		}
	}

	return false
}

// unavailableCode tells PostgreSQL's codes of a server that is away, full, about to stop, too slow by limits of its own, or not the one
// that writes any more, and of a transaction that has to be tried again.
func unavailableCode(code string) bool {
	// Connection, resources, operator intervention, time-outs (idle in a transaction, of it, of a lock, of a statement), deadlock.
	for _, class := range []string{"08", "53", "57P", "25P03", "25P04", "55P03", "57014", codeReadOnly, "40"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}

	return false
}
