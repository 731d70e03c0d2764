// Package atomicfile replaces files at once, so that nobody ever reads half of one, whenever the writer dies.
package atomicfile

import (
	"fmt"
	"os"
)

// ownerOnly are the permissions of all files, because some of them are secret.
const ownerOnly = 0o600

// Write gives a file its content. Two writers of the same file must not write at the same time.
func Write(path string, content []byte) error {
	written := path + ".new"
	if err := os.WriteFile(written, content, ownerOnly); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(written, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
