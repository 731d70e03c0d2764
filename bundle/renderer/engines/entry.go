package engines

import (
	"io/fs"
	"path"
	"time"
)

// entry is an fs.FileInfo with only the name and the type of a file or folder. The matching of .helmignore rules uses nothing
// else.
type entry struct {
	name string
	mode fs.FileMode
}

func (e entry) Name() string       { return path.Base(e.name) }
func (e entry) Size() int64        { return 0 }
func (e entry) Mode() fs.FileMode  { return e.mode }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.mode.IsDir() }
func (e entry) Sys() any           { return nil }
