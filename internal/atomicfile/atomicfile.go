// Package atomicfile replaces files atomically: a reader sees the old content or the new one, never a part of either, whenever
// the writing process dies. The state of the sandbox and of the gardens, and the configuration of ebctl, are written this way.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	folderMode = 0o700
	// leftover is the prefix of the temporary files. A process that is killed while it writes leaves one behind.
	leftover = ".unfinished-"
)

// Write replaces the content of a file and creates its folder if needed. Only the owner can read both, because some files hold
// secrets. The content survives the death of the process, not that of the machine: nothing waits for the disk.
func Write(path string, content []byte) error {
	if err := write(path, content); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// write creates a temporary file in the same folder, because a rename is atomic only within one file system.
func write(path string, content []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, leftover)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// Leftover reports whether name is that of a temporary file of Write. It can be removed if no process writes.
func Leftover(name string) bool { return strings.HasPrefix(name, leftover) }
