package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/bundle/archive"
)

// TestLayers checks how layers of images build on each other.
func TestLayers(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		layers [][]entry
		want   map[string]string
	}{
		"replaced": {
			"a layer replaces files of lower ones, and keeps the others",
			[][]entry{{folder("d"), file("d/a", "old"), file("d/b", "kept")}, {folder("d"), file("d/a", "new")}},
			map[string]string{"d/": "", "d/a": "new", "d/b": "kept"},
		},
		"removed": {
			"a whiteout removes a file or a folder",
			[][]entry{{file("a", "x"), file("d/e/a", "x"), file("d/b", "y")}, {file(".wh.a", ""), file("d/.wh.e", "")}},
			map[string]string{"d/": "", "d/b": "y"},
		},
		"opaque": {
			"an opaque folder keeps what its own layer writes, before and after the marker",
			[][]entry{
				{file("d/a", "x"), file("d/e/b", "x"), file("other", "x"), file("d/f/old", "x")},
				{file("d/new", "n"), file("d/f/new", "n"), file("d/.wh..wh..opq", ""), file("d/e/c", "c")},
			},
			map[string]string{"d/": "", "d/new": "n", "d/f/": "", "d/f/new": "n", "d/e/": "", "d/e/c": "c", "other": "x"},
		},
		"changed kind": {
			"a folder can become a file, a file a folder and a link either",
			[][]entry{
				{file("a/x", "x"), file("b", "x"), link("c", "b"), link("d", "a")},
				{file("a", "file"), file("b/y", "y"), file("c", "file"), folder("d"), file("d/z", "z")},
			},
			map[string]string{"a": "file", "b/": "", "b/y": "y", "c": "file", "d/": "", "d/z": "z"},
		},
		"case": {
			"after the removal, another spelling is no collision",
			[][]entry{{file("Readme", "x")}, {file(".wh.Readme", ""), file("README", "y")}},
			map[string]string{"README": "y"},
		},
		"links": {
			"absolute links start at the root of the image, which has no parent; files are written through links",
			[][]entry{
				{folder("usr/bin"), link("bin", "usr/bin"), link("usr/bin/sh", "/usr/lib/sh"), link("usr/up", "../../../../etc")},
				{file("bin/tool", "x")},
			},
			map[string]string{"usr/": "", "usr/bin/": "", "bin": "-> usr/bin", "usr/bin/sh": "-> ../lib/sh", "usr/up": "-> ../etc", "usr/bin/tool": "x"},
		},
		"hard link": {
			"it becomes a copy",
			[][]entry{{file("a", "x")}, {hardLink("d/b", "a"), hardLink("./a", "a")}},
			map[string]string{"a": "x", "d/": "", "d/b": "x"},
		},
		"metadata": {
			"drivers leave files of their own in layers",
			[][]entry{{file(".wh..wh.aufs", ""), entry{tar.Header{Name: ".wh..wh.plnk", Typeflag: tar.TypeDir}, ""}, file("a", "x")}},
			map[string]string{"a": "x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := newRoot(t)
			tree := archive.NewTree(root, archive.Limits{})

			for _, layer := range test.layers {
				if err := tree.Layer(t.Context(), bytes.NewReader(gzipped(t, tarred(t, layer...)))); err != nil {
					t.Fatal(err)
				}
			}

			if err := tree.Close(); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, listed(t, root.FS())); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

// TestHostileLayers checks that layers cannot reach anything outside the folder, and share their limits.
func TestHostileLayers(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		layers [][]entry
		want   string
	}{
		"parent":         {"it is outside the folder", [][]entry{{file("../x", "x")}}, "is outside the folder"},
		"whiteout":       {"it removes something outside", [][]entry{{file("../.wh.x", "")}}, "is outside the folder"},
		"whiteout of ..": {"it removes the parent", [][]entry{{file("d/.wh...", "")}}, "removes no file"},
		"hard link":      {"it reads something outside", [][]entry{{hardLink("a", "../../etc/passwd")}}, "is outside the folder"},
		"absolute":       {"it reads something outside", [][]entry{{hardLink("a", "/etc/passwd")}}, "is outside the folder"},
		"link out":       {"the second link starts at another folder than its path says", [][]entry{{file("a/b/c", "x"), link("a/b/up", "../..")}, {link("a/b/up/out", "../../../x"), hardLink("h", "out")}}, "is outside the folder"},
		"link of link":   {"a link to a folder is no file", [][]entry{{folder("d"), link("l", "d"), hardLink("h", "l")}}, "something that is not a file"},
		"loop":           {"it has no end", [][]entry{{link("a", "b"), link("b", "a"), file("a/x", "x")}}, "or not valid"},
		"device":         {"it is no content", [][]entry{{entry{tar.Header{Name: "x", Typeflag: tar.TypeChar}, ""}}}, "neither a file nor a folder"},
		"copies":         {"each copy takes space", [][]entry{{file("a", strings.Repeat("x", 1<<19)), hardLink("b", "a"), hardLink("c", "a")}}, "1 MiB"},
		"sum":            {"layers share the limit", [][]entry{{file("a", strings.Repeat("x", 1<<19))}, {file("a", strings.Repeat("x", 1<<19))}, {file("a", "x")}}, "1 MiB"},
		"whiteouts":      {"each takes time", [][]entry{{file("a", "x")}, {file(".wh.a", ""), file(".wh.b", ""), file(".wh.c", ""), file(".wh.d", ""), file(".wh.e", "")}}, "more than 5 files"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := archive.NewTree(newRoot(t), archive.Limits{Bytes: 1 << 20, Files: 5})

			var err error
			for _, layer := range test.layers {
				if err == nil {
					err = tree.Layer(t.Context(), bytes.NewReader(tarred(t, layer...)))
				}
			}

			if _, invalid := errors.AsType[*archive.InvalidError](err); !invalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.reason, err, test.want)
			}

			if err := tree.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
