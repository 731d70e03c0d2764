package releases

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// FuzzRelease reads arbitrary descriptions of releases, and makes plans for those that are accepted.
func FuzzRelease(f *testing.F) {
	for _, seed := range []string{
		"", "version: 1.0.0\ncomponents: [{name: a, namespace: b, manifests: manifests}]", "version: 1.0.0\ncomponents: [{name: a, dependsOn: [a]}, {name: b, dependsOn: [c]}]",
		"components: {}", "{a: &x [*x]}", "version: [1]", "components: [null]", "version: 1.0.0\ncomponents: [{name: a, manifests: ../x}]",
		"version: 1.0.0\ncomponents: [{name: a, profiles: {Evaluation: {a: b}}, values: {a: null}}]", "a: &a [x,x]\nb: [*a,*a]",
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, content []byte) {
		folder := fstest.MapFS{
			file:                  {Data: content},
			"manifests/file.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {a: \"${a}\"}\n")},
		}

		found, err := read(folder, "1.0.0")
		if err != nil {
			return
		}

		order := spec.Kyma{Version: "1.0.0"}
		for _, name := range found.names() {
			order.Components = append(order.Components, &spec.Component{Component: name})
		}

		if plan, err := found.plan(order, true); err == nil && len(plan.Components) == 0 {
			t.Errorf("%q is accepted with an empty plan", content)
		}
	})
}

// tarOf returns a tar archive with a file.
func tarOf(tb testing.TB, name string) []byte {
	tb.Helper()

	var content bytes.Buffer

	files := tar.NewWriter(&content)
	if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 1, Typeflag: tar.TypeReg}); err != nil {
		tb.Fatal(err)
	}

	if _, err := files.Write([]byte("x")); err != nil {
		tb.Fatal(err)
	}

	if err := files.Close(); err != nil {
		tb.Fatal(err)
	}

	return content.Bytes()
}

// FuzzUnpack unpacks arbitrary archives. Nothing is written outside the folder.
func FuzzUnpack(f *testing.F) {
	for _, seed := range []string{"", "x", string(make([]byte, 1024))} {
		f.Add([]byte(seed))
	}

	for _, name := range []string{"a/b.yaml", "../outside", "/absolute", "a", "./a/../b"} {
		f.Add(tarOf(f, name))
	}

	f.Fuzz(func(t *testing.T, content []byte) {
		parent := t.TempDir()
		folder := filepath.Join(parent, "folder")

		if err := os.Mkdir(folder, 0o750); err != nil {
			t.Fatal(err)
		}

		var packed bytes.Buffer

		zipped := gzip.NewWriter(&packed)
		if _, err := zipped.Write(content); err != nil {
			t.Fatal(err)
		}

		if err := zipped.Close(); err != nil {
			t.Fatal(err)
		}

		if err := unpack(t.Context(), &packed, folder, maxBytes); err != nil && errors.Is(err, fs.ErrPermission) {
			t.Errorf("%q: %v", content, err)
		}

		entries, err := os.ReadDir(parent)
		if err != nil || len(entries) != 1 {
			t.Errorf("%q writes outside the folder: %v, %v", content, entries, err)
		}
	})
}
