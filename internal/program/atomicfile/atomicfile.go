// Package atomicfile replaces files atomically: a reader sees either the old content or the new content, even if the writing
// process dies. The sandbox and the gardens use it for their state, and ebctl uses it for its configuration and for exports of the
// audit log.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	folderMode = 0o700
	// leftover is the prefix of temporary files. A process that is killed during Write leaves a temporary file behind.
	leftover = ".unfinished-"
)

// Write replaces the content of a file and creates the folder if needed. Only the owner can read the file and the folder,
// because some files contain secrets. The content survives a crash of the process but possibly not of the machine: Write does
// not call fsync.
func Write(path string, content []byte) error {
	err := os.MkdirAll(filepath.Dir(path), folderMode)
	if err == nil {
		err = WriteTo(path, func(file io.Writer) error {
			_, err := file.Write(content)

			return err
		})
	}

	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// WriteTo is like Write, but content writes the content, the folder must exist, and errors do not name the file. If content fails, the
// old content remains. The temporary file is in the same folder, because a rename is atomic only within one file system.
func WriteTo(path string, content func(file io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), leftover)
	if err != nil {
		return err
	}

	if err = errors.Join(content(file), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}

	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}

	return nil
}

// Leftover reports whether name is the name of a temporary file that Write created. Such files can be removed while no process
// calls Write.
func Leftover(name string) bool { return strings.HasPrefix(name, leftover) }
