package renderer

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// pack writes the files of a bundle as a tar archive. It replaces a link to a file with a copy of the file, and rejects other links. limit
// is the maximum size of all files together, in bytes.
func pack(bundle fs.FS, to io.Writer, limit int64) error {
	archive, left := tar.NewWriter(to), limit

	err := fs.WalkDir(bundle, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		info, err := fs.Stat(bundle, name)
		if err != nil || !info.Mode().IsRegular() {
			return failure.New(failure.Permanent, "%q is neither a file nor a link to a file of the bundle", name)
		}

		if left -= info.Size(); left < 0 {
			return failure.New(failure.Permanent, "the files of the bundle have more than %d bytes", limit)
		}

		content, err := fs.ReadFile(bundle, name)
		if err != nil {
			return err
		}

		if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content))}); err != nil {
			return err
		}

		_, err = archive.Write(content)

		return err
	})
	if err != nil {
		return fmt.Errorf("reading the bundle: %w", err)
	}

	return archive.Close()
}
