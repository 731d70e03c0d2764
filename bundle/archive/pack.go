package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// Pack writes a tar archive of the tree, compressed with gzip. With the same version of Go, the bytes of the archive depend only
// on the names, contents and links in the tree: entries are sorted and have fixed modes, and they have neither an owner nor a
// time. Pack fails with an InvalidError for devices and for links that lead out of the tree, so Extract accepts what Pack writes.
func Pack(ctx context.Context, tree fs.FS, to io.Writer) error {
	zipped := gzip.NewWriter(to)
	archive := tar.NewWriter(zipped)

	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case name == ".":
			return nil
		default:
			return pack(archive, tree, name, entry)
		}
	})

	if err == nil {
		err = archive.Close()
	}

	return errors.Join(err, zipped.Close())
}

func pack(archive *tar.Writer, tree fs.FS, name string, entry fs.DirEntry) error {
	header := &tar.Header{Name: name, ModTime: time.Unix(0, 0)}

	switch entry.Type() {
	case fs.ModeDir:
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, name+"/", 0o755

		return archive.WriteHeader(header)
	case fs.ModeSymlink:
		target, err := fs.ReadLink(tree, name)
		if err != nil {
			return err
		}

		if !staysInside(name, target) {
			return invalid("%q is a link to %q, which is outside the folder", name, target)
		}

		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, target, 0o777

		return archive.WriteHeader(header)
	case 0:
		return packFile(archive, tree, header)
	default:
		return invalid("%q is neither a file nor a folder", name)
	}
}

func packFile(archive *tar.Writer, tree fs.FS, header *tar.Header) error {
	file, err := tree.Open(header.Name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // It has been read only.

	info, err := file.Stat()
	if err != nil {
		return err
	}

	header.Typeflag, header.Size, header.Mode = tar.TypeReg, info.Size(), 0o644
	if err := archive.WriteHeader(header); err != nil {
		return err
	}

	_, err = io.Copy(archive, file)

	return err
}
