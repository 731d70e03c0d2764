// Package assets embeds the style sheet, the scripts and the icon of the console. Pages load nothing from other hosts, so the
// console works without access to other networks.
//
// The vendor folder contains htmx and its extension for server-sent events, as npm publishes them. `make console-assets` updates
// them to the versions in the Makefile.
package assets

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed console.css console.js icon.svg vendor/*.js
var files embed.FS

// Prefix is the path below which Handler serves the files.
const Prefix = "/console/assets/"

// hashLength is the number of hexadecimal digits that identify the content of a file.
const hashLength = 12

// Path returns the path of a file, such as "console.css". The path contains a hash of the content, so browsers may cache the file
// forever. Path panics if there is no such file.
func Path(name string) string {
	path, found := paths()[name]
	if !found {
		panic("there is no file " + name)
	}

	return path
}

// paths returns the paths of all files, keyed by file name. It hashes the files once, because every page refers to several of them.
var paths = sync.OnceValue(func() map[string]string { //nolint:gochecknoglobals // never changes
	found := map[string]string{}

	_ = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := files.ReadFile(name)
		sum := sha256.Sum256(content)
		found[name] = Prefix + hex.EncodeToString(sum[:])[:hashLength] + "/" + name

		return err
	}) // embedded files can always be read

	return found
})

// Handler returns a handler for the paths that Path returns. It responds with 404 to all others, including paths with an outdated
// hash.
func Handler() http.Handler {
	contents := map[string][]byte{}

	for name, path := range paths() {
		contents[path], _ = files.ReadFile(name) // embedded files can be read
	}

	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, found := contents[r.URL.Path]
		if !found || strings.Contains(r.URL.Path, "..") {
			http.NotFound(w, r)

			return
		}

		w.Header().Set("Content-Type", types[path.Ext(r.URL.Path)])
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		_, _ = w.Write(content) // an error means that the client has disconnected
	})
}
