package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	folderMode  = 0o700
	extension   = ".json"
	unfinished  = ".unfinished-"
	clusterWide = "-"
)

// files keeps one file per object: <dir>/<resource>.<group>/<namespace>/<name>.json, readable only by the owner, because some objects
// are secrets. Files appear and change atomically.
type files struct {
	dir string
}

func (f files) path(resource schema.GroupVersionResource, namespace, name string) string {
	if namespace == "" {
		namespace = clusterWide
	}
	return filepath.Join(f.dir, resource.GroupResource().String(), namespace, name+extension)
}

func (f files) write(resource schema.GroupVersionResource, namespace, name string, content []byte) error {
	path := f.path(resource, namespace, name)
	if err := f.replace(path, content); err != nil {
		return fmt.Errorf("store %s %s: %w", resource.Resource, name, err)
	}
	return nil
}

func (f files) replace(path string, content []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, unfinished)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return os.Rename(file.Name(), path)
}

func (f files) remove(resource schema.GroupVersionResource, namespace, name string) error {
	if err := os.Remove(f.path(resource, namespace, name)); err != nil {
		return fmt.Errorf("remove %s %s: %w", resource.Resource, name, err)
	}
	return nil
}

// load hands over the content of every file, and removes what a killed process left half written.
func (f files) load(restore func(content []byte) error) error {
	if err := os.MkdirAll(f.dir, folderMode); err != nil {
		return fmt.Errorf("make the folder of the store: %w", err)
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return fmt.Errorf("open the folder of the store: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir():
			return err
		case strings.HasPrefix(entry.Name(), unfinished):
			return root.Remove(path)
		case filepath.Ext(path) != extension:
			return nil
		}
		content, err := root.ReadFile(path)
		if err == nil {
			err = restore(content)
		}
		if err != nil {
			return fmt.Errorf("file %s: %w", path, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the store in %s: %w", f.dir, err)
	}
	return nil
}
