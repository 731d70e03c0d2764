package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// ownerOnly is the mode of the SQLite files. Other users must not read these files, because names, tenant IDs and other columns
// are not encrypted.
const ownerOnly = 0o600

// lockSQLite locks the SQLite file until the lock is released or the process ends, and makes the file and its companion files
// readable by their owner only. It creates missing files. SQLite supports only one replica, and a second process would not respect
// the leases and limits of the first.
func lockSQLite(path string) (*flock.Flock, error) {
	lock := flock.New(path+".lock", flock.SetPermissions(ownerOnly))

	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking %s.lock: %w", path, err)
	}

	if !locked {
		return nil, errors.New("another process uses the file: with SQLite, a service can have only one replica; stop the other process or use PostgreSQL")
	}

	if err := protect(path); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}

	return lock, nil
}

// protect creates the SQLite file if it is missing, and removes all permissions of other users from the file and its companion
// files. When SQLite creates companion files, it gives them the mode of the file itself.
func protect(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, ownerOnly)
	if err != nil {
		return err //nolint:wrapcheck // the error names the file
	}

	if err := file.Close(); err != nil {
		return err //nolint:wrapcheck // the error names the file
	}

	for _, name := range []string{path, path + "-wal", path + "-shm", path + ".lock"} {
		info, err := os.Stat(name)

		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && info.Mode().Perm()&^ownerOnly != 0:
			err = os.Chmod(name, ownerOnly)
		}

		if err != nil {
			return fmt.Errorf("making the file readable by its owner only, as chmod 600 does: %w", err)
		}
	}

	return nil
}

// checkIntegrity fails if the SQLite file is damaged. It reads the whole file, so it takes about as long as copying the file.
func (db *DB) checkIntegrity(ctx context.Context) error {
	var problem string

	err := db.writer.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&problem)

	switch {
	case err == nil && problem == "ok":
		return nil
	case err == nil:
		err = errors.New(problem)
	case !damaged(err):
		return fmt.Errorf("checking %s: %w", db.config, err)
	}

	return fmt.Errorf("the file %s is damaged, or not a SQLite database: check the path, or restore the file from a backup: %w", db.config.Path, err)
}

// damaged reports whether the error means that the file is not a valid SQLite database.
func damaged(err error) bool {
	sqliteErr, ok := errors.AsType[*sqlite.Error](err)

	const primary = 0xff // the lowest byte of an extended code is the primary code

	return ok && (sqliteErr.Code()&primary == sqlite3.SQLITE_CORRUPT || sqliteErr.Code()&primary == sqlite3.SQLITE_NOTADB)
}

// release releases the lock on the SQLite file. It does nothing for PostgreSQL.
func (db *DB) release() error {
	if db.lock == nil {
		return nil
	}

	return failure.While(db.lock.Unlock(), "unlocking %s.lock", db.config.Path)
}
