package catalog

import (
	"context"
	"fmt"
	"io/fs"
)

// Folder is a Store: a folder with one folder per release, which is called as the version. A release may be added at any time.
type Folder struct{ FS fs.FS }

// Open implements Store.
func (f Folder) Open(_ context.Context, version string) (fs.FS, error) {
	if _, err := fs.Stat(f.FS, version); err != nil {
		return nil, fmt.Errorf("open release %s: %w", version, err)
	}
	return fs.Sub(f.FS, version)
}

// Versions implements Store.
func (f Folder) Versions(context.Context) ([]string, error) {
	entries, err := fs.ReadDir(f.FS, ".")
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, entry := range entries {
		if entry.IsDir() {
			versions = append(versions, entry.Name())
		}
	}
	return versions, nil
}
