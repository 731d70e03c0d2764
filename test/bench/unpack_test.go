package bench

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
	"testing/fstest"
	"time"

	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/test/bench/report"
)

// measureUnpack compares the extraction of a bundle with a plain loop that uses only Go's standard packages. The loop verifies the
// digest and writes the same files without any other check.
func measureUnpack(s *scope) {
	const times = 20

	packed := s.packedBundle()

	s.rounds(func(s *scope) {
		var ours, plain time.Duration

		for range times {
			ours += s.extraction(func(folder string) error { return extract(s, packed, folder) })
			plain += s.extraction(func(folder string) error { return plainly(packed, folder) })
		}

		rate := func(took time.Duration) float64 { return float64(len(packed)) * times / took.Seconds() / mebibyte }
		s.addWithFloor(report.Figure{
			Name: "unpack a bundle of 500 files, compressed", Unit: "MiB/s", FloorShare: 60, Note: "floor: archive/tar, gzip and sha256",
		}, rate(ours), rate(plain))
	})
}

// packedBundle returns an archive with 500 manifests, 8 MiB in total.
func (s *scope) packedBundle() []byte {
	const files, size, perFolder = 500, 16 << 10, 50

	tree := fstest.MapFS{}
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"apiVersion: v1\n", "kind: ConfigMap\n", "metadata:\n", "  name: settings\n", "data:\n", "  key: "}

	for i := range files {
		var content bytes.Buffer
		for content.Len() < size {
			fmt.Fprintf(&content, "%s%x\n", words[random.IntN(len(words))], random.Uint64())
		}

		tree[fmt.Sprintf("manifests/part-%d/object-%d.yaml", i/perFolder, i)] = &fstest.MapFile{Data: content.Bytes()}
	}

	var packed bytes.Buffer

	s.check(archive.Pack(s.Context(), tree, &packed))

	return packed.Bytes()
}

// extraction calls extract with a new folder and returns how long that takes.
func (s *scope) extraction(extract func(folder string) error) time.Duration {
	folder, err := os.MkdirTemp(s.TempDir(), "")
	s.check(err)

	start := time.Now()

	s.check(extract(folder))

	took := time.Since(start)

	s.check(os.RemoveAll(folder))

	return took
}

// extract extracts an archive as the bundle provisioner does.
func extract(s *scope, content []byte, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()

	sum := sha256.New()
	err = archive.Extract(s.Context(), io.TeeReader(bytes.NewReader(content), sum), root, archive.DefaultLimits())
	sum.Sum(nil)

	return err
}

// plainly extracts an archive with Go's standard packages only.
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
