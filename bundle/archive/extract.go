package archive

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Extract writes the content of a tar archive, which may be compressed with gzip, to root, which must be empty. It reads the
// archive to its end. If it fails, the root may contain a part of the content. It returns an InvalidError for an archive that
// Tree or the limits reject, and the errors of the reader and of the file system unchanged.
func Extract(ctx context.Context, from io.Reader, root *os.Root, limits Limits) error {
	tree := NewTree(root, limits)

	return errors.Join(tree.extract(ctx, from, tree.write), tree.Close())
}

// extract calls write for each entry of an archive.
func (t *Tree) extract(ctx context.Context, from io.Reader, write func(*tar.Header, io.Reader) error) error {
	packed := &meter{
		context: ctx, from: from, left: t.limits.CompressedBytes,
		tooLarge: invalid("the archive is larger than %s", size(t.limits.CompressedBytes)),
	}
	buffered := bufio.NewReaderSize(packed, bufferSize)
	content := &meter{
		context: ctx, from: buffered, left: t.limits.Bytes + t.limits.headers(),
		tooLarge: t.tooMuch(),
	}

	err := unzip(buffered, content)
	if err == nil {
		err = each(content, write)
	}

	// The data after the last entry is padding. Reading it verifies the checksum of the archive.
	for _, rest := range []io.Reader{content, buffered} {
		if err == nil {
			_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{rest}, t.buffer)
		}
	}

	_, tooLarge := errors.AsType[*InvalidError](content.failed)

	switch {
	case packed.failed != nil:
		return packed.failed
	case tooLarge:
		return content.failed
	case err == nil && !packed.some:
		return invalid("the archive is empty")
	default:
		return classified(err)
	}
}

// unzip makes content read from a gzip reader if the data in from is compressed.
func unzip(from *bufio.Reader, content *meter) error {
	if magic, _ := from.Peek(2); len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b {
		return nil
	}

	unzipped, err := gzip.NewReader(from)
	if err == nil {
		content.from = unzipped
	}

	return err
}

// each calls write for each entry of a tar archive.
func each(from io.Reader, write func(*tar.Header, io.Reader) error) error {
	entries := tar.NewReader(from)

	for {
		header, err := entries.Next()

		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case header.Typeflag == tar.TypeXGlobalHeader:
			continue // git archive writes such a header, with the commit
		}

		if err := write(header, entries); err != nil {
			return err
		}
	}
}

// classified converts an error from the tar or gzip package to an InvalidError, and returns file system errors unchanged.
func classified(err error) error {
	_, known := errors.AsType[*InvalidError](err)
	_, system := errors.AsType[syscall.Errno](err)

	if err == nil || known || system {
		return err
	}

	return invalid("not a valid tar archive: %w", err)
}

// clean returns the cleaned path of an entry. It leaves invalid paths unchanged, so that Tree rejects them.
func clean(name string) string {
	if strings.HasPrefix(name, "/") || slices.Contains(strings.Split(name, "/"), "..") {
		return name
	}

	return path.Clean(name)
}

// write writes an archive entry to the tree.
func (t *Tree) write(header *tar.Header, content io.Reader) error {
	name := clean(header.Name)

	switch header.Typeflag {
	case tar.TypeDir:
		return t.Folder(name)
	case tar.TypeReg, tar.TypeGNUSparse:
		return t.File(name, header.Size, content)
	case tar.TypeSymlink:
		return t.Link(name, header.Linkname)
	default:
		return invalid("%q is neither a file nor a folder", shortened(header.Name))
	}
}

// meter is a reader with a limit. It fails when more bytes than allowed are read, or when the context ends, and stores the error
// with which it failed.
type meter struct {
	context  context.Context //nolint:containedctx // io.Reader has no context
	from     io.Reader
	left     int64
	tooLarge error

	some   bool
	failed error
}

// Read implements io.Reader.
func (m *meter) Read(buffer []byte) (int, error) {
	if m.failed == nil {
		m.failed = m.context.Err()
	}

	if m.failed != nil {
		return 0, m.failed
	}

	read, err := m.from.Read(buffer)
	m.left -= int64(read)
	m.some = m.some || read > 0

	switch {
	case m.left < 0:
		m.failed = m.tooLarge
	case err != nil && !errors.Is(err, io.EOF):
		m.failed = err
	default:
		return read, err
	}

	return 0, m.failed
}
