package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/environment-broker/environment-broker/resources"
)

// releases returns the folder of the releases that users can install. It copies missing sample releases to the folder and changes
// nothing else, so users can add and edit releases. A sample that a user has deleted is copied again.
func (c Config) releases() (string, error) {
	path := filepath.Join(c.Dir, "releases")

	samples, err := fs.ReadDir(resources.Releases(), ".")
	if err != nil {
		return "", fmt.Errorf("listing the sample releases: %w", err)
	}

	for _, sample := range samples {
		if err := copySample(filepath.Join(path, sample.Name()), sample.Name()); err != nil {
			return "", fmt.Errorf("copying the sample release %s: %w", sample.Name(), err)
		}
	}

	return path, nil
}

// copySample copies a sample unless path exists. It copies to a temporary folder, which it then renames, so a killed process
// never leaves a partial release. The next call removes a leftover temporary folder.
func copySample(path, sample string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	content, err := fs.Sub(resources.Releases(), sample)
	if err != nil {
		return err
	}

	unfinished := filepath.Join(filepath.Dir(path), ".unfinished")
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}

	if err := os.CopyFS(unfinished, content); err != nil {
		return err
	}

	return os.Rename(unfinished, path)
}
