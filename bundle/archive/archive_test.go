package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/bundle/archive"
)

// entry is an entry of an archive: a file, unless the header has another type.
type entry struct {
	header  tar.Header
	content string
}

func file(name, content string) entry { return entry{tar.Header{Name: name}, content} }

func link(name, target string) entry {
	return entry{tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeSymlink}, ""}
}

func hardLink(name, target string) entry {
	return entry{tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeLink}, ""}
}

func folder(name string) entry { return entry{tar.Header{Name: name, Typeflag: tar.TypeDir}, ""} }

// tarred returns an archive. A header with a size may have less content than the size.
func tarred(tb testing.TB, entries ...entry) []byte {
	tb.Helper()

	var content bytes.Buffer

	archive := tar.NewWriter(&content)

	for _, entry := range entries {
		header := entry.header
		if header.Typeflag != tar.TypeXGlobalHeader {
			header.Mode = 0o644
		}

		if header.Typeflag == 0 {
			header.Typeflag = tar.TypeReg
		}

		if header.Size == 0 {
			header.Size = int64(len(entry.content))
		}

		if err := archive.WriteHeader(&header); err != nil {
			tb.Fatal(err)
		}

		if _, err := archive.Write([]byte(entry.content)); err != nil {
			tb.Fatal(err)
		}
	}

	archive.Close()

	return content.Bytes()
}

func gzipped(tb testing.TB, content []byte) []byte {
	tb.Helper()

	var packed bytes.Buffer

	zipped := gzip.NewWriter(&packed)
	if _, err := zipped.Write(content); err != nil {
		tb.Fatal(err)
	}

	zipped.Close()

	return packed.Bytes()
}

// newRoot returns the root of a new folder. At the end of the test, nothing else may be beside the folder.
func newRoot(tb testing.TB) *os.Root {
	tb.Helper()

	parent := tb.TempDir()
	folder := filepath.Join(parent, "root")

	if err := os.Mkdir(folder, 0o750); err != nil {
		tb.Fatal(err)
	}

	root, err := os.OpenRoot(folder)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		root.Close()

		if beside, err := os.ReadDir(parent); err != nil || len(beside) != 1 {
			tb.Errorf("something was written outside the root: %v, %v", beside, err)
		}
	})

	return root
}

// listed returns the content of a tree: files with their content, folders with a slash, links with their target.
func listed(tb testing.TB, tree fs.FS) map[string]string {
	tb.Helper()

	found := map[string]string{}

	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
		case entry.IsDir():
			found[name+"/"] = ""
		case entry.Type() == fs.ModeSymlink:
			target, failed := fs.ReadLink(tree, name)
			found[name], err = "-> "+target, failed
		default:
			content, failed := fs.ReadFile(tree, name)
			found[name], err = string(content), failed
		}

		return err
	})
	if err != nil {
		tb.Fatal(err)
	}

	return found
}

// TestExtract checks archives in the forms that tar, git and others write.
func TestExtract(t *testing.T) {
	entries := []entry{
		{tar.Header{Typeflag: tar.TypeXGlobalHeader, Format: tar.FormatPAX, PAXRecords: map[string]string{"comment": "commit"}}, ""},
		folder("./"), folder("manifests/"), file("manifests/a.yaml", "a"), file("./deep/er/b.yaml", "b"), link("deep/current", "er/b.yaml"),
		link("up", "deep"), link("deep/er/back", "../../manifests"), file("empty", ""), file(strings.Repeat("n", 255), "long"),
		file(strings.Repeat("d/", 63)+"file", "deepest"),
	}
	want := map[string]string{
		"manifests/": "", "manifests/a.yaml": "a", "deep/": "", "deep/er/": "", "deep/er/b.yaml": "b", "deep/current": "-> er/b.yaml",
		"up": "-> deep", "deep/er/back": "-> ../../manifests", "empty": "", strings.Repeat("n", 255): "long",
		strings.Repeat("d/", 63) + "file": "deepest",
	}

	for depth := range 63 {
		want[strings.Repeat("d/", depth+1)] = ""
	}

	plain := tarred(t, entries...)
	for name, content := range map[string][]byte{"tar": plain, "tar.gz": gzipped(t, plain)} {
		t.Run(name, func(t *testing.T) {
			root := newRoot(t)
			if err := archive.Extract(t.Context(), iotest.OneByteReader(bytes.NewReader(content)), root, archive.Limits{}); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(want, listed(t, root.FS())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestHostileArchives checks that each hostile archive is reported as invalid, and writes nothing outside the folder.
func TestHostileArchives(t *testing.T) {
	many := make([]entry, 100_000)
	for i := range many {
		many[i] = file(fmt.Sprintf("f%d", i), "")
	}

	whole := gzipped(t, tarred(t, file("a", strings.Repeat("content", 1000))))
	bomb := gzipped(t, tarred(t, file("a", strings.Repeat("\x00", 3<<20))))
	wrongSum := bytes.Clone(whole)
	wrongSum[len(wrongSum)-8] ^= 1

	for name, test := range map[string]struct {
		reason  string
		content []byte
		want    string
	}{
		"absolute":         {"it is outside the folder", tarred(t, file("/etc/passwd", "x")), `the path "/etc/passwd" is outside the folder`},
		"parent":           {"it is outside the folder", tarred(t, file("../x", "x")), `the path "../x" is outside the folder`},
		"inner parent":     {"other programs may resolve it differently", tarred(t, file("a/../b", "x")), `the path "a/../b" is outside the folder`},
		"parent folder":    {"folders are paths too", tarred(t, folder("../d/")), `is outside the folder`},
		"absolute link":    {"it is outside the folder", tarred(t, link("l", "/etc")), `"l" is a link to "/etc", which is outside the folder`},
		"link out":         {"it is outside the folder", tarred(t, link("d/l", "../../x")), `is outside the folder`},
		"link through":     {"a link on its way may lead up", tarred(t, link("a/b/up", "../.."), link("a/b/out", "up/../x")), `is outside the folder`},
		"below link":       {"the file would be elsewhere", tarred(t, folder("d"), link("l", "d"), file("l/x", "x")), `"l" occurs twice, or both as a file and as a folder`},
		"over link":        {"the file would be elsewhere", tarred(t, link("l", "x"), file("l", "x")), `"l" occurs twice`},
		"hard link":        {"it can refer to anything", tarred(t, file("a", "x"), hardLink("b", "a")), `"b" is neither a file nor a folder`},
		"hard link out":    {"it can refer to anything", tarred(t, hardLink("b", "/etc/passwd")), `"b" is neither a file nor a folder`},
		"device":           {"it is no content", tarred(t, entry{tar.Header{Name: "sda", Typeflag: tar.TypeBlock, Devmajor: 8}, ""}), `"sda" is neither a file nor a folder`},
		"console":          {"it is no content", tarred(t, entry{tar.Header{Name: "tty", Typeflag: tar.TypeChar}, ""}), `neither a file nor a folder`},
		"pipe":             {"reading it would block", tarred(t, entry{tar.Header{Name: "p", Typeflag: tar.TypeFifo}, ""}), `neither a file nor a folder`},
		"twice":            {"one of the two would be lost", tarred(t, file("x", "y"), file("./x", "z")), `"x" occurs twice`},
		"file and folder":  {"it cannot be both", tarred(t, file("x", "y"), file("x/y", "z")), `"x" occurs twice, or both as a file and as a folder`},
		"folder and file":  {"it cannot be both", tarred(t, file("x/y", "z"), file("x", "y")), `"x" occurs twice, or both as a file and as a folder`},
		"case":             {"some file systems cannot hold both", tarred(t, file("Readme", "y"), file("README", "z")), `"Readme" and "README" differ only in upper and lower case`},
		"case of folders":  {"some file systems cannot hold both", tarred(t, file("A/x", "y"), file("a/y", "z")), `"A" and "a" differ only in upper and lower case`},
		"case of letters":  {"some file systems cannot hold both", tarred(t, file("straſse", "y"), file("strasse", "z")), `differ only in upper and lower case`},
		"long name":        {"no file system has such names", tarred(t, file(strings.Repeat("n", 256), "x")), `is outside the folder or not valid`},
		"very long name":   {"the error has to stay short", tarred(t, file(strings.Repeat("n", 500_000), "x")), `n…"`},
		"deep":             {"programs recurse into folders", tarred(t, file(strings.Repeat("d/", 64)+"f", "x")), `has more than 64 elements`},
		"not UTF-8":        {"JSON cannot hold the name", tarred(t, file("a\xff", "x")), `or not valid`},
		"many files":       {"the number of files is bounded", tarred(t, many...), `it has more than 1000 files`},
		"large file":       {"its size alone is too large", tarred(t, file("a", strings.Repeat("x", 2<<20+1))), `or more than 2 MiB`},
		"large sum":        {"the sum of the sizes is bounded", tarred(t, file("a", strings.Repeat("x", 1<<20)), file("b", strings.Repeat("x", 1<<20+1))), `or more than 2 MiB`},
		"sparse":           {"a small archive has a huge file", sparse(t, 1<<32), `or more than 2 MiB`},
		"bomb":             {"a small archive has a large file", bomb, `or more than 2 MiB`},
		"bomb at the end":  {"what follows the files is read too", gzipped(t, append(tarred(t, file("a", "x")), make([]byte, 8<<20)...)), `or more than 2 MiB`},
		"large archive":    {"the archive is bounded too", tarred(t, incompressible(t, 1<<20+512<<10)), `the archive is larger than 1 MiB`},
		"truncated gzip":   {"the rest is missing", whole[:len(whole)/2], `unexpected EOF`},
		"truncated header": {"the rest is missing", whole[:5], `unexpected EOF`},
		"checksum":         {"the content is damaged", wrongSum, `invalid checksum`},
		"truncated tar":    {"the rest is missing", tarred(t, file("a", strings.Repeat("x", 2000)))[:1000], `unexpected EOF`},
		"text":             {"it is something else", []byte(strings.Repeat("apiVersion: v1\n", 100)), `not a valid tar archive`},
		"empty":            {"a server may return nothing", nil, `the archive is empty`},
	} {
		t.Run(name, func(t *testing.T) {
			limits := archive.Limits{Bytes: 2 << 20, CompressedBytes: 1 << 20, Files: 1000}
			if len(test.content) > 1<<20 && name != "large archive" {
				limits.CompressedBytes = math.MaxInt64
			}

			err := archive.Extract(t.Context(), bytes.NewReader(test.content), newRoot(t), limits)
			if _, invalid := errors.AsType[*archive.InvalidError](err); !invalid || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 1024 {
				t.Errorf("%s: %v, want %q", test.reason, err, test.want)
			}
		})
	}

	if err := archive.Extract(t.Context(), bytes.NewReader(tarred(t, link("a", "b"))), newRoot(t), archive.Limits{NoLinks: true}); err == nil {
		t.Error("a link is accepted without links")
	}
}

func incompressible(tb testing.TB, size int) entry {
	tb.Helper()

	content := make([]byte, size)
	rand.Read(content)

	return file("random", string(content))
}

// sparse returns an archive with a file that has the size, but no data, in the format of GNU tar.
func sparse(tb testing.TB, size int64) []byte {
	tb.Helper()

	content := tarred(tb, entry{tar.Header{Name: "a", Format: tar.FormatGNU}, ""})
	content[156] = tar.TypeGNUSparse
	copy(content[386:], fmt.Sprintf("%011o\x00%011o\x00", size, 0)) // the only fragment
	copy(content[483:], fmt.Sprintf("%011o\x00", size))             // the size with the holes
	copy(content[148:], "        ")

	sum := 0
	for _, value := range content[:512] {
		sum += int(value)
	}

	copy(content[148:], fmt.Sprintf("%06o\x00 ", sum))

	return content
}

// TestErrorsOfTheReader checks that an interrupted transfer is not reported as an invalid archive.
func TestErrorsOfTheReader(t *testing.T) {
	content := gzipped(t, tarred(t, incompressible(t, 1<<20)))

	for _, at := range []int{0, 1, 12, 1000, len(content) - 4} {
		lost := errors.New("connection lost")
		from := io.MultiReader(bytes.NewReader(content[:at]), iotest.ErrReader(lost))

		if err := archive.Extract(t.Context(), from, newRoot(t), archive.Limits{}); !errors.Is(err, lost) {
			t.Errorf("lost after %d bytes: %v", at, err)
		}
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()

	if err := archive.Extract(ended, bytes.NewReader(content), newRoot(t), archive.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestPack checks that the same tree gives the same bytes, and that Extract restores it.
func TestPack(t *testing.T) {
	tree := fstest.MapFS{
		"b/file":       {Data: []byte("content"), Mode: 0o600},
		"a":            {Data: []byte("x"), Mode: 0o755},
		"b.file":       {Data: []byte("y")},
		"empty/folder": {Mode: fs.ModeDir},
		"b/link":       {Data: []byte("../a"), Mode: fs.ModeSymlink},
	}

	var first bytes.Buffer
	if err := archive.Pack(t.Context(), tree, &first); err != nil {
		t.Fatal(err)
	}

	root := newRoot(t)
	if err := archive.Extract(t.Context(), bytes.NewReader(first.Bytes()), root, archive.Limits{}); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(listed(t, tree), listed(t, root.FS())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	var second bytes.Buffer
	if err := archive.Pack(t.Context(), root.FS(), &second); err != nil {
		t.Fatal(err)
	}

	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same tree gives other bytes")
	}

	// Digests of bundles are stored in their status. Another version of Go that compresses differently changes them.
	const digest = "d800d1d41a6494954e43765a8aac9e58bfc2cb0c98176715f0bb7802790639b5"
	if got := fmt.Sprintf("%x", sha256.Sum256(first.Bytes())); got != digest {
		t.Errorf("got the digest %s, want %s", got, digest)
	}

	for name, tree := range map[string]fs.FS{
		"link out": fstest.MapFS{"l": {Data: []byte("../x"), Mode: fs.ModeSymlink}},
		"device":   fstest.MapFS{"l": {Mode: fs.ModeDevice}},
	} {
		if _, invalid := errors.AsType[*archive.InvalidError](archive.Pack(t.Context(), tree, io.Discard)); !invalid {
			t.Errorf("%s: it is packed", name)
		}
	}
}
