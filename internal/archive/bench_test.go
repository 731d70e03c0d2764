package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/environment-broker/environment-broker/internal/archive"
)

// BenchmarkExtract compares Extract with a plain loop over Go's packages, which verifies the digest and writes the same files without any
// check. The metric ratio is the speed of Extract relative to the loop.
func BenchmarkExtract(b *testing.B) {
	tree := fstest.MapFS{}
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"apiVersion: v1\n", "kind: ConfigMap\n", "metadata:\n", "  name: settings\n", "data:\n", "  key: "}

	for i := range 500 {
		var content bytes.Buffer
		for content.Len() < 16<<10 {
			fmt.Fprintf(&content, "%s%x\n", words[random.IntN(len(words))], random.Uint64())
		}

		tree[fmt.Sprintf("manifests/part-%d/object-%d.yaml", i/50, i)] = &fstest.MapFile{Data: content.Bytes()}
	}

	var packed bytes.Buffer
	if err := archive.Pack(b.Context(), tree, &packed); err != nil {
		b.Fatal(err)
	}

	var ours, plain time.Duration

	// Both write to new folders of the same file system, by turns.
	parent := b.TempDir()
	measure := func(name string, extract func(folder string) error) time.Duration {
		folder := filepath.Join(parent, name)
		if err := os.Mkdir(folder, 0o750); err != nil {
			b.Fatal(err)
		}

		started := time.Now()

		if err := extract(folder); err != nil {
			b.Fatal(err)
		}

		taken := time.Since(started)

		if err := os.RemoveAll(folder); err != nil {
			b.Fatal(err)
		}

		return taken
	}

	for b.Loop() {
		ours += measure("ours", func(folder string) error {
			root, err := os.OpenRoot(folder)
			if err != nil {
				return err
			}
			defer root.Close()

			sum := sha256.New()
			err = archive.Extract(b.Context(), io.TeeReader(bytes.NewReader(packed.Bytes()), sum), root, archive.Limits{})
			sum.Sum(nil)

			return err
		})
		plain += measure("plain", func(folder string) error { return plainly(packed.Bytes(), folder) })
	}

	b.ReportMetric(plain.Seconds()/ours.Seconds(), "ratio")
	b.ReportMetric(float64(packed.Len())*float64(b.N)/ours.Seconds()/1e6, "MB/s")
}

// plainly extracts an archive with Go's packages only.
func plainly(content []byte, folder string) error {
	sum := sha256.New()

	unzipped, err := gzip.NewReader(io.TeeReader(bytes.NewReader(content), sum))
	if err != nil {
		return err
	}

	for entries := tar.NewReader(unzipped); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			sum.Sum(nil)

			return nil
		}

		if err != nil {
			return err
		}

		path := filepath.Join(folder, header.Name)
		if header.Typeflag == tar.TypeDir {
			if err := os.Mkdir(path, 0o750); err != nil {
				return err
			}

			continue
		}

		file, err := os.Create(path)
		if err != nil {
			return err
		}

		if _, err := io.Copy(file, entries); err != nil {
			return err
		}

		if err := file.Close(); err != nil {
			return err
		}
	}
}
