package source

import (
	"errors"
	"io"
	"os"
	"path"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/environment-broker/environment-broker/bundle/archive"
)

// longestTarget is the maximum length of a symbolic link's target, in bytes.
const longestTarget = 4096

// writeCommit writes a folder of a commit to into. It does not follow links, so the folder itself cannot be a link.
func writeCommit(commit *object.Commit, directory string, into *os.Root, limits archive.Limits) error {
	content, err := commit.Tree()
	if err != nil {
		return err
	}

	if directory != "." {
		content, err = content.Tree(directory)
		if errors.Is(err, object.ErrDirectoryNotFound) || errors.Is(err, object.ErrEntryNotFound) {
			return terminal("the commit %s has no folder %s", commit.Hash, directory)
		}

		if err != nil {
			return err
		}
	}

	tree := archive.NewTree(into, limits)

	return errors.Join(writeTree(tree, content, "."), tree.Close())
}

// writeTree writes a folder and its content. The limits that archive.Tree enforces also limit the depth of the recursion.
func writeTree(into *archive.Tree, from *object.Tree, folder string) error {
	for _, entry := range from.Entries {
		name := path.Join(folder, entry.Name)
		if entry.Name == ".." || entry.Name == "." || path.Base(name) != entry.Name {
			return terminal("the commit contains the invalid name %q", entry.Name)
		}

		if err := writeEntry(into, from, entry, name); err != nil {
			return err
		}
	}

	return nil
}

// writeEntry writes an entry of a folder. For a submodule, it creates an empty folder, as git clone does.
func writeEntry(into *archive.Tree, from *object.Tree, entry object.TreeEntry, name string) error {
	switch entry.Mode {
	case filemode.Submodule:
		return into.Folder(name)
	case filemode.Dir:
		if err := into.Folder(name); err != nil {
			return err
		}

		content, err := from.Tree(entry.Name)
		if err != nil {
			return err
		}

		return writeTree(into, content, name)
	default:
		return writeFile(into, from, entry, name)
	}
}

// writeFile writes a file or a symbolic link.
func writeFile(into *archive.Tree, from *object.Tree, entry object.TreeEntry, name string) error {
	file, err := from.TreeEntryFile(&entry)
	if err != nil {
		return err
	}

	content, err := file.Reader()
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // It has been read only.

	if entry.Mode != filemode.Symlink {
		return into.File(name, file.Size, content)
	}

	target, err := io.ReadAll(io.LimitReader(content, longestTarget))
	if err != nil {
		return err
	}

	return into.Link(name, string(target))
}
