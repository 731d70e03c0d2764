package archive

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

const (
	fileMode   = 0o640
	folderMode = 0o750
	bufferSize = 64 << 10
)

type kind int

const (
	folder kind = iota
	file
	link
)

// entry is a path that a Tree has written.
type entry struct {
	name string
	kind kind
	// layer is the number of the layer that wrote the entry last.
	layer int
}

// Tree writes files, folders and links below a folder. It rejects, with an InvalidError:
//
//   - paths that are absolute, contain .. or are too long
//   - paths that occur twice, and paths that differ only in case, because some file systems cannot store both
//   - links that lead out of the tree, and paths that lead through a link
//   - content that exceeds the limits
//
// Only one goroutine may use a Tree, and nothing else may write to the folder.
type Tree struct {
	root    *os.Root
	limits  Limits
	files   int
	left    int64
	layer   int
	buffer  []byte
	entries map[string]entry

	// parent is the path of the folder that was opened last, and opened is the handle for this folder.
	parent string
	opened *os.Root
}

// NewTree returns a Tree that writes to the root, which must be empty. Close releases the handles that the Tree opens, but not
// the root.
func NewTree(root *os.Root, limits Limits) *Tree {
	limits = limits.withDefaults()

	return &Tree{
		root: root, limits: limits, left: limits.Bytes, buffer: make([]byte, bufferSize),
		entries: map[string]entry{}, parent: ".", opened: root,
	}
}

// Close releases the handles of the Tree.
func (t *Tree) Close() error { return t.open(".") }

// Folder creates a folder and its parents. It accepts a folder that exists.
func (t *Tree) Folder(name string) error {
	if name == "." {
		return nil
	}

	if err := t.check(name); err != nil {
		return err
	}

	if known := t.entries[folded(name)]; t.layer > 0 && known.kind == link && known.name == name {
		if err := t.remove(name); err != nil {
			return err
		}
	}

	return t.folders(name)
}

// File creates a file of the given size from the start of the content. If the content is shorter, it returns io.ErrUnexpectedEOF.
func (t *Tree) File(name string, bytes int64, content io.Reader) error {
	if bytes < 0 || bytes > t.left {
		return t.tooMuch()
	}
	t.left -= bytes

	if err := t.add(name, file); err != nil {
		return err
	}

	created, err := t.opened.OpenFile(path.Base(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return explain(name, err)
	}

	// The wrappers hide the ReadFrom and WriteTo methods, because io.CopyBuffer would use these instead of the buffer.
	copied, err := io.CopyBuffer(struct{ io.Writer }{created}, struct{ io.Reader }{io.LimitReader(content, bytes)}, t.buffer)
	if err == nil && copied < bytes {
		err = io.ErrUnexpectedEOF
	}

	return errors.Join(err, created.Close())
}

// Link creates a symbolic link. Its target is relative to the folder of the link.
func (t *Tree) Link(name, target string) error {
	switch {
	case t.limits.NoLinks:
		return invalid("%q is neither a file nor a folder", shortened(name))
	case !fs.ValidPath(name) || !staysInside(name, target):
		return invalid("%q is a link to %q, which is outside the folder", shortened(name), shortened(target))
	}

	if err := t.add(name, link); err != nil {
		return err
	}

	return explain(name, t.opened.Symlink(target, path.Base(name)))
}

// staysInside reports whether a link stays in the tree. In an accepted target, all .. elements come first. They lead upward from
// the folder of the link, through folders that are not links. The other elements lead only downward, possibly through other
// links, which staysInside has accepted too.
func staysInside(name, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return false
	}

	up, rest := 0, target
	for rest == ".." || strings.HasPrefix(rest, "../") {
		up, rest = up+1, strings.TrimPrefix(strings.TrimPrefix(rest, ".."), "/")
	}

	return up <= strings.Count(name, "/") && !slices.Contains(strings.Split(rest, "/"), "..")
}

// check rejects paths that are invalid, lead out of the tree, or exceed Limits.Depth.
func (t *Tree) check(name string) error {
	switch {
	case !fs.ValidPath(name) || name == ".":
		return invalid("the path %q is outside the folder or not valid", shortened(name))
	case strings.Count(name, "/") >= t.limits.Depth:
		return invalid("the path %q has more than %d elements", shortened(name), t.limits.Depth)
	default:
		return nil
	}
}

// shortened returns at most the first 256 bytes of a path, for an error.
func shortened(name string) string {
	const most = 256
	if len(name) > most {
		return name[:most] + "…"
	}

	return name
}

// add prepares the creation of a file or link: it creates the parent folders, records the path, and opens the folder.
func (t *Tree) add(name string, kind kind) error {
	if err := t.check(name); err != nil {
		return err
	}

	if err := t.folders(path.Dir(name)); err != nil {
		return err
	}

	if err := t.replace(name, kind); err != nil {
		return err
	}

	if err := t.record(name, kind); err != nil {
		return err
	}

	return t.open(path.Dir(name))
}

// folders creates a folder and its parents.
func (t *Tree) folders(name string) error {
	if name == "." || name == t.parent && t.layer == 0 {
		return nil
	}

	if err := t.folders(path.Dir(name)); err != nil {
		return err
	}

	if err := t.replace(name, folder); err != nil {
		return err
	}

	// A layer may write through a link of a lower layer, as a container runtime does. os.Root ensures that the write stays inside the
	// root.
	known, exists := t.entries[folded(name)]
	if exists && known.name == name && (known.kind == folder || known.kind == link && t.layer > 0) {
		known.layer = t.layer
		t.entries[folded(name)] = known

		return nil
	}

	if err := t.record(name, folder); err != nil {
		return err
	}

	return explain(name, t.root.Mkdir(name, folderMode))
}

// record adds an entry to the tree. It returns an InvalidError if the path already has an entry.
func (t *Tree) record(name string, kind kind) error {
	known, exists := t.entries[folded(name)]

	switch {
	case exists && known.name != name:
		return invalid("%q and %q differ only in upper and lower case", known.name, name)
	case exists:
		return invalid("%q occurs twice, or both as a file and as a folder", name)
	}

	if err := t.count(); err != nil {
		return err
	}

	t.entries[folded(name)] = entry{name: name, kind: kind, layer: t.layer}

	return nil
}

// count counts an entry toward Limits.Files.
func (t *Tree) count() error {
	if t.files++; t.files > t.limits.Files {
		return t.tooMuch()
	}

	return nil
}

// tooMuch returns the error for content with too many files or too many bytes.
func (t *Tree) tooMuch() error {
	return invalid("it has more than %d files or more than %s of content", t.limits.Files, size(t.limits.Bytes))
}

// folded returns a form of the path that is the same for all paths that differ only in case.
func folded(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// open opens the folder for the next write. Most archives list all files of a folder together. Keeping the folder open means that
// its path need not be resolved again for each file.
func (t *Tree) open(name string) error {
	if name == t.parent {
		return nil
	}

	var err error
	if t.opened != t.root {
		err = t.opened.Close()
	}

	t.parent, t.opened = ".", t.root

	if name == "." || err != nil {
		return err
	}

	opened, err := t.root.OpenRoot(name)
	if err != nil {
		return explain(name, err)
	}

	t.parent, t.opened = name, opened

	return nil
}

// below returns the paths of all entries below the folder. Each entry comes before the folder that contains it, so they can be removed
// in this order.
func (t *Tree) below(name string) []string {
	var found []string

	for _, entry := range t.entries {
		if name == "." || strings.HasPrefix(entry.name, name+"/") {
			found = append(found, entry.name)
		}
	}

	slices.SortFunc(found, func(a, b string) int { return strings.Compare(b, a) })

	return found
}

// forget removes the entry and all entries below it from t.entries.
func (t *Tree) forget(name string) {
	maps.DeleteFunc(t.entries, func(_ string, entry entry) bool {
		return entry.name == name || strings.HasPrefix(entry.name, name+"/")
	})
}

// explain returns an InvalidError if the path is the cause of a file system error, and other errors unchanged. An error that is
// not a syscall.Errno comes from os.Root itself: the path leads out of the root.
func explain(name string, err error) error {
	if err == nil {
		return nil
	}

	number, numbered := errors.AsType[syscall.Errno](err)

	switch {
	case errors.Is(err, fs.ErrExist), numbered && (number == syscall.ENOTDIR || number == syscall.EISDIR):
		return invalid("%q occurs twice, or both as a file and as a folder", shortened(name))
	case !numbered && !errors.Is(err, fs.ErrClosed), number == syscall.ENAMETOOLONG, number == syscall.ELOOP, number == syscall.EINVAL,
		number == syscall.ENOENT:
		return invalid("the path %q is outside the folder or not valid", shortened(name))
	default:
		return err
	}
}
