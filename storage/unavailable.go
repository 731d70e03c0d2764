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
	if known, ok := errors.AsType[*pq.Error](err); ok {
		return unavailableCode(string(known.Code))
	}

	if known, ok := errors.AsType[*sqlite.Error](err); ok {
		const primary = 0xff // extended codes hold the primary one in their lowest byte

		switch known.Code() & primary {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
			return true
		}

		return false
	}

	if _, ok := errors.AsType[net.Error](err); ok && !errors.Is(err, context.Canceled) {
		return true
	}

	for _, hungUp := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, hungUp) {
			return true
		}
	}

	return false
}

// unavailableCode tells PostgreSQL's codes of a server that is away, full, about to stop, or not the one that writes any more, and of a
// transaction that has to be tried again.
func unavailableCode(code string) bool {
	// Connection, resources, operator intervention, a transaction that was idle for too long or that only reads, deadlock.
	for _, class := range []string{"08", "53", "57P", "25P03", "25006", "40"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}

	return false
}
