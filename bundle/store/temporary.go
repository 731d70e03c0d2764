package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// lockExtension is the extension of the file that its process locks as long as it uses a temporary folder.
const lockExtension = ".lock"

// Temporary creates a folder for files that only this process uses, and returns its path. Close removes the folder. If the process
// dies, a later Sweep of any process removes it.
func (s *Store) Temporary() (string, error) {
	name := filepath.Join(temporary, uuid.NewString())

	lock, err := s.root.OpenFile(name+lockExtension, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("creating a temporary folder in the bundle store: %w", err)
	}

	s.temporary = append(s.temporary, lock)

	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = s.root.Mkdir(name, folderMode)
	}

	if err != nil {
		return "", fmt.Errorf("creating a temporary folder in the bundle store: %w", err)
	}

	return filepath.Join(s.path, name), nil
}

// sweepTemporary removes the temporary folders of processes that have died, if they were created before the given time. It returns
// the number of removed folders.
func (s *Store) sweepTemporary(before time.Time) (removed int, err error) {
	locks, err := fs.Glob(s.root.FS(), temporary+"/*"+lockExtension)
	if err != nil {
		return 0, err
	}

	for _, lock := range locks {
		info, err := s.root.Stat(lock)
		if err != nil || info.ModTime().After(before) || !s.abandoned(lock) {
			continue
		}

		if err := s.removeTemporary(lock); err != nil {
			return removed, err
		}

		removed++
	}

	return removed, nil
}

// removeTemporary removes the temporary folder with the given lock, and then the lock.
func (s *Store) removeTemporary(lock string) error {
	return errors.Join(s.root.RemoveAll(strings.TrimSuffix(lock, lockExtension)), ignoreMissing(s.root.Remove(lock)))
}
