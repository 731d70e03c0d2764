package releases_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation/releases"
)

// TestOversizedReleases checks that a release that is too large is rejected by the sizes in its manifest and in its archive, before its
// content is read.
func TestOversizedReleases(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		push   func(r *registry)
		want   string
	}{
		"Layer": {
			"a download must not fill the disk",
			func(r *registry) {
				manifest := mustMarshal(t, map[string]any{
					"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
					"config": map[string]any{"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest([]byte("{}")), "size": 2},
					"layers": []any{map[string]any{"mediaType": folderType, "digest": digest(nil), "size": 64<<20 + 1}},
				})
				r.tags["1.0.0"], r.blobs[digest(manifest)] = manifest, manifest
			},
			"is larger than 64 MiB",
		},
		"Manifest": {
			"a manifest is read into memory",
			func(r *registry) {
				manifest := bytes.Repeat([]byte(" "), 4<<20+1)
				r.tags["1.0.0"], r.blobs[digest(manifest)] = manifest, manifest
			},
			"the manifest of release 1.0.0 is larger than 4 MiB",
		},
		"Archive": {
			"a small archive can contain a large file",
			func(r *registry) { r.push("1.0.0", folderType, archiveWithFile(t, 256<<20+1)) },
			"more than 10000 files or more than 256 MiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry, cache := newRegistry(t), t.TempDir()
			test.push(registry)

			_, err := releases.New(registry.store(t, cache)).Plan(t.Context(), wants())
			if !failure.Is(err, failure.Permanent) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.reason, err, test.want)
			}

			if left, err := os.ReadDir(cache); err != nil || len(left) > 0 {
				t.Errorf("%s: the cache contains %v, %v", test.reason, left, err)
			}
		})
	}
}

// archiveWithFile returns the beginning of a tar.gz whose only file has the given size.
func archiveWithFile(t *testing.T, size int64) []byte {
	t.Helper()

	content := &bytes.Buffer{}
	zipped := gzip.NewWriter(content)

	if err := tar.NewWriter(zipped).WriteHeader(&tar.Header{Name: "x", Mode: 0o644, Size: size, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}

	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}

	return content.Bytes()
}

func mustMarshal(t *testing.T, value any) []byte {
	t.Helper()

	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	return text
}
