package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// File is one file of manifests.
type File struct {
	Name    string
	Content []byte
}

// Read returns the files of a file or a folder, with those of the folders in it, by name. Files that are not YAML are left out.
func Read(from fs.FS, name string) ([]File, error) {
	var files []File
	err := fs.WalkDir(from, name, func(at string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		case !slices.Contains([]string{".yaml", ".yml"}, strings.ToLower(path.Ext(at))):
			return nil
		}
		content, err := fs.ReadFile(from, at)
		if err != nil {
			return err
		}
		files = append(files, File{Name: at, Content: content})
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no such file or folder", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifests in %s: %w", name, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: there is no YAML file in it", name)
	}
	return files, nil
}
