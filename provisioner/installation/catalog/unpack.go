package catalog

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const (
	// mostFiles and mostBytes bound what one release unpacks to.
	mostFiles = 10_000
	mostBytes = 256 << 20
)

// unpack writes the files of a tar.gz below the folder. Anything but files and folders is an error, as is a name that leads elsewhere.
func unpack(from io.Reader, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing was written through the folder itself
	packed, err := gzip.NewReader(from)
	if err != nil {
		return &brokenError{fmt.Errorf("it is no gzip: %w", err)}
	}
	files, left := tar.NewReader(packed), int64(mostBytes)
	for count := 0; ; count++ {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &brokenError{fmt.Errorf("it is no tar: %w", err)}
		}
		name := path.Clean(strings.TrimSuffix(header.Name, "/"))
		left -= header.Size
		switch {
		case !fs.ValidPath(name):
			return &brokenError{fmt.Errorf("the file %q leads elsewhere", header.Name)}
		case count >= mostFiles || left < 0:
			return &brokenError{fmt.Errorf("it has more than %d files or %d bytes", mostFiles, mostBytes)}
		case header.Typeflag == tar.TypeDir:
			err = root.MkdirAll(name, 0o750)
		case header.Typeflag == tar.TypeReg:
			err = write(root, name, files)
		default:
			return &brokenError{fmt.Errorf("%q is neither a file nor a folder", header.Name)}
		}
		if err != nil {
			return err
		}
	}
}

func write(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o750); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
