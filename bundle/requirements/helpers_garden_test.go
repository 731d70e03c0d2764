//go:build garden

package requirements_test

import (
	"io/fs"
	"testing/fstest"
)

func manifest() fs.FS {
	return fstest.MapFS{"manifests/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}}
}

func other() fs.FS {
	return fstest.MapFS{"manifests/b.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")}}
}

func has(files fs.FS) func(*supply) {
	return func(s *supply) { *s = supply{files: files, fetches: s.fetches} }
}
