package source

import (
	"encoding/json"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/environment-broker/environment-broker/bundle/archive"
)

// FuzzManifest reads arbitrary image manifests and indexes. Accepted layers must be within the limits.
func FuzzManifest(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", `{"layers":[{"size":-1}]}`, `{"layers":[null]}`, `{"manifests":[null]}`, `{"manifests":[{"platform":{"os":"linux"}}]}`,
		`{"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","size":9223372036854775807,"digest":"sha256:x"},{"size":1}]}`,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		var (
			manifest ocispec.Manifest
			index    ocispec.Index
		)

		if json.Unmarshal(text, &index) == nil {
			choose(index)
		}

		limits := archive.DefaultLimits()
		if json.Unmarshal(text, &manifest) != nil || (&image{limits: limits}).check(manifest.Layers) != nil {
			return
		}

		var sum int64

		for _, layer := range manifest.Layers {
			if sum += layer.Size; layer.Size < 0 || layer.Digest.Validate() != nil {
				t.Errorf("the layer %+v is accepted", layer)
			}
		}

		if sum > limits.CompressedBytes {
			t.Errorf("%d bytes are accepted", sum)
		}
	})
}
