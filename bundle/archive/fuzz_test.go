package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/bundle/archive"
)

// FuzzExtract extracts arbitrary archives. Nothing is written outside the root, and an accepted archive survives Pack and Extract.
func FuzzExtract(f *testing.F) {
	for _, seed := range [][]byte{
		nil, []byte("x"), make([]byte, 1024), sparse(f, 1<<20),
		tarred(f, file("a", "x"), folder("d"), link("d/l", "../a"), file("d/e/f", "")),
		tarred(f, link("a/b/up", "../.."), link("a/b/out", "up/../x")),
		tarred(f, file("/a", "x")), tarred(f, file("../a", "x")), tarred(f, file("A", "x"), file("a", "x")),
		gzipped(f, tarred(f, file("a", "x"))),
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, content []byte) {
		limits := archive.Limits{Bytes: 1 << 20, Files: 100}
		root := newRoot(t)

		err := archive.Extract(t.Context(), bytes.NewReader(content), root, limits)
		if err != nil {
			if _, invalid := errors.AsType[*archive.InvalidError](err); !invalid {
				t.Errorf("an invalid archive gives another error: %v", err)
			}

			return
		}

		var packed bytes.Buffer
		if err := archive.Pack(t.Context(), root.FS(), &packed); err != nil {
			t.Fatal(err)
		}

		again := newRoot(t)
		if err := archive.Extract(t.Context(), &packed, again, limits); err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(listed(t, root.FS()), listed(t, again.FS())); diff != "" {
			t.Errorf("-first +second:\n%s", diff)
		}
	})
}

// FuzzLayer applies two arbitrary layers. Nothing is written outside the root.
func FuzzLayer(f *testing.F) {
	f.Add(tarred(f, file("a", "x"), link("up", "/"), folder("d")), tarred(f, file("up/b", "x"), file(".wh.a", ""), file("d/.wh..wh..opq", "")))
	f.Add(tarred(f, file("a/b/c", "x"), link("a/b/up", "../..")), tarred(f, link("a/b/up/out", "../../../x"), hardLink("h", "out")))
	f.Add(tarred(f, hardLink("a", "../b")), tarred(f, entry{tar.Header{Name: "../.wh.x"}, ""}))

	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		tree := archive.NewTree(newRoot(t), archive.Limits{Bytes: 1 << 20, Files: 100})

		for _, layer := range [][]byte{lower, upper} {
			err := tree.Layer(t.Context(), bytes.NewReader(layer))
			if err == nil {
				continue
			}

			if _, invalid := errors.AsType[*archive.InvalidError](err); !invalid {
				t.Errorf("an invalid layer gives another error: %v", err)
			}

			break
		}

		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
}
