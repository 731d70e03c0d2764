package resources

import (
	"embed"
	"io/fs"
)

//go:embed releases
var releases embed.FS

// Releases returns the sample releases, each in a folder that is called as its version. The sandbox installs them.
func Releases() fs.FS {
	found, err := fs.Sub(releases, "releases")
	if err != nil {
		return releases // "releases" is a valid path: this cannot be
	}
	return found
}
