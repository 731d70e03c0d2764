package archive

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// whiteout is the name prefix of a marker file, which removes a file from lower layers. The name of the file to remove
	// follows the prefix.
	whiteout = ".wh."
	// opaque is the name of a marker file that removes everything that lower layers have written to the folder of the marker
	// file.
	opaque = whiteout + whiteout + ".opq"
)

// Layer applies an OCI image layer to the tree: it replaces and removes files of lower layers. Hard links become copies, and
// absolute links start at the root of the tree. Except for CompressedBytes, the limits apply to all layers together.
func (t *Tree) Layer(ctx context.Context, from io.Reader) error {
	t.layer++

	return t.extract(ctx, from, t.writeLayered)
}

// writeLayered applies an entry of a layer to the tree.
func (t *Tree) writeLayered(header *tar.Header, content io.Reader) error {
	name := clean(header.Name)
	removed, isWhiteout := strings.CutPrefix(path.Base(name), whiteout)

	switch {
	case !fs.ValidPath(name):
		return t.check(name)
	case isWhiteout && (removed == "" || removed == "." || removed == ".."):
		return invalid("%q removes no file", name)
	case path.Base(name) == opaque:
		return t.clear(path.Dir(name))
	case isWhiteout && strings.HasPrefix(removed, whiteout):
		return nil // metadata of a storage driver
	case isWhiteout:
		return t.removeLower(path.Join(path.Dir(name), removed))
	case header.Typeflag == tar.TypeLink:
		return t.copy(name, clean(header.Linkname))
	case header.Typeflag == tar.TypeSymlink:
		return t.Link(name, rebased(name, header.Linkname))
	default:
		return t.write(header, content)
	}
}

// rebased returns the target of a link as a path relative to the folder of the link. As in a container, .. elements do not lead
// above the root of the tree.
func rebased(name, target string) string {
	if !path.IsAbs(target) {
		target = path.Join("/", path.Dir(name), target)
	}

	relative, err := filepath.Rel(path.Join("/", path.Dir(name)), path.Clean(target))
	if err != nil {
		return target // Link rejects it.
	}

	return filepath.ToSlash(relative)
}

// copy creates name as a copy of the file target, in place of a hard link.
func (t *Tree) copy(name, target string) error {
	if err := t.check(target); err != nil {
		return err
	}

	original, err := t.root.Open(target)
	if err != nil {
		return explain(target, err)
	}
	defer original.Close()

	info, err := original.Stat()
	if err != nil {
		return err
	}

	if !info.Mode().IsRegular() {
		return invalid("%q is a hard link to something that is not a file", name)
	}

	if path.Clean(name) == target {
		return nil
	}

	return t.File(name, info.Size(), original)
}

// replace makes room for an entry of a layer: it removes the existing entry with the same path. If the new entry is a folder, an
// existing folder remains, and so does an existing link, because a layer may write through it.
func (t *Tree) replace(name string, kind kind) error {
	known, exists := t.entries[folded(name)]
	if t.layer == 0 || !exists || known.name != name || known.kind == folder && kind == folder || known.kind == link && kind == folder {
		return nil
	}

	return t.remove(name)
}

// remove removes an entry and everything below it.
func (t *Tree) remove(name string) error {
	if err := t.open("."); err != nil {
		return err
	}

	t.forget(name)

	return explain(name, t.root.RemoveAll(name))
}

// removeLower removes an entry and everything below it, except for entries of the current layer.
func (t *Tree) removeLower(name string) error {
	if err := t.clear(name); err != nil {
		return err
	}

	return t.removeOne(name)
}

// clear removes everything that lower layers have written to the folder. Each call counts toward Limits.Files, because clearing a
// folder takes time.
func (t *Tree) clear(name string) error {
	if err := t.count(); err != nil {
		return err
	}

	for _, path := range t.below(name) {
		if err := t.removeOne(path); err != nil {
			return err
		}
	}

	return nil
}

// removeOne removes a file, a link or an empty folder of a lower layer. A folder that is not empty stays, because it contains entries of
// the current layer.
func (t *Tree) removeOne(name string) error {
	known, exists := t.entries[folded(name)]
	if !exists || known.name != name || known.layer == t.layer {
		return nil
	}

	if err := t.open("."); err != nil {
		return err
	}

	err := t.root.Remove(name)
	if number, numbered := errors.AsType[syscall.Errno](err); numbered && (number == syscall.ENOTEMPTY || number == syscall.EEXIST) {
		return nil
	}

	delete(t.entries, folded(name))

	if errors.Is(err, fs.ErrNotExist) {
		return nil // The entry was below a folder that a link has replaced.
	}

	return explain(name, err)
}
