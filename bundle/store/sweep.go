package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Sweep removes the archives and uploads that no Bundle uses, and the temporary files and folders of processes that have died. It
// keeps files that were stored less than 15 minutes ago, because their Bundles might not refer to them yet. It returns the number
// of removed files and folders.
func (s *Store) Sweep(ctx context.Context, archiveInUse func(Digest) bool, uploadInUse func(bundle string) bool) (int, error) {
	before := time.Now().Add(-grace)
	removed := 0

	for folder, unused := range map[string]func(name string) bool{
		blobs:   func(name string) bool { return !archiveInUse(Digest(algorithm + ":" + name)) },
		uploads: func(name string) bool { return !uploadInUse(name) },
		partial: func(name string) bool { return s.abandoned(filepath.Join(partial, name)) },
	} {
		entries, err := fs.ReadDir(s.root.FS(), folder)
		if err != nil {
			return removed, fmt.Errorf("reading the bundle store: %w", err)
		}

		for _, entry := range entries {
			if ctx.Err() != nil {
				return removed, ctx.Err()
			}

			if !unused(strings.TrimSuffix(entry.Name(), extension)) {
				continue
			}

			done, err := s.removeOld(filepath.Join(folder, entry.Name()), before)
			if err != nil {
				return removed, fmt.Errorf("removing files from the bundle store: %w", err)
			}

			if done {
				removed++
			}
		}
	}

	s.forgetRemoved()

	folders, err := s.sweepTemporary(before)
	if err != nil {
		return removed, fmt.Errorf("removing temporary folders from the bundle store: %w", err)
	}

	return removed + folders, nil
}

// removeOld removes a file that was last written before the given time. It reports whether it removed the file.
func (s *Store) removeOld(name string, before time.Time) (bool, error) {
	s.lock.Lock()
	defer s.lock.Unlock()

	info, err := s.root.Stat(name)
	if err != nil || info.ModTime().After(before) {
		return false, ignoreMissing(err)
	}

	s.before()

	return true, ignoreMissing(s.root.Remove(name))
}

// forgetRemoved deletes the entries in verified for archives that were removed.
func (s *Store) forgetRemoved() {
	s.lock.Lock()
	defer s.lock.Unlock()

	for digest := range s.verified {
		if _, err := s.root.Stat(blobName(digest)); errors.Is(err, fs.ErrNotExist) {
			delete(s.verified, digest)
		}
	}
}

// abandoned reports whether no process has locked a file.
func (s *Store) abandoned(name string) bool {
	file, err := s.root.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()

	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// explain adds advice for operators to an error that a full volume causes. It returns all other errors unchanged.
func (s *Store) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the bundle store has no space left: enlarge the volume of %s, or delete Bundles: %w", s.path, err)
	default:
		return err
	}
}
