package source_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/source"
	"github.com/environment-broker/environment-broker/bundle/store"
)

// TestInvalidSources checks sources that the API server should have rejected. Each must result in a terminal error instead of a
// panic.
func TestInvalidSources(t *testing.T) {
	for _, kind := range []v1alpha1.SourceType{"image", "git", "http", "configMaps", "upload"} {
		mustFail(t, "the block is missing", source.Options{}, v1alpha1.BundleSource{Type: kind}, true, "source type "+string(kind)+" requires the field source."+string(kind))
	}

	mustFail(t, "another block is set", source.Options{}, v1alpha1.BundleSource{Type: "http", Image: &v1alpha1.ImageSource{Ref: "x"}}, true, "requires the field source.http")
	mustFail(t, "the type is unknown", source.Options{}, v1alpha1.BundleSource{Type: "library"}, true, "source type library is not supported by this provisioner")

	sources := source.New(source.Options{})
	delete(sources, v1alpha1.SourceTypeUpload)

	_, err := sources.Fetch(t.Context(), source.Request{Source: v1alpha1.BundleSource{Type: "upload", Upload: &v1alpha1.UploadSource{}}}, nil)
	if !source.Terminal(err) || err.Error() != "source type upload is not supported by this provisioner" {
		t.Errorf("a disabled type: %v", err)
	}
}

func configMaps(sources ...v1alpha1.ConfigMapSource) v1alpha1.BundleSource {
	return v1alpha1.BundleSource{Type: v1alpha1.SourceTypeConfigMaps, ConfigMaps: sources}
}

func configMap(name, path string) v1alpha1.ConfigMapSource {
	return v1alpha1.ConfigMapSource{ConfigMap: v1alpha1.LocalReference{Name: name}, Path: path}
}

func TestConfigMaps(t *testing.T) {
	options := source.Options{Reader: cluster{configMaps: map[string]corev1.ConfigMap{
		"a": {Data: map[string]string{"one.yaml": "1", "two.yaml": "2"}},
		"b": {Data: map[string]string{"one.yaml": "3"}, BinaryData: map[string][]byte{"chart.bin": {0, 1}}},
		"c": {Data: map[string]string{"One.yaml": "4"}},
	}}}

	from := configMaps(configMap("a", "manifests"), configMap("b", ""), configMap("c", "manifests/crds/"))
	resolved := mustFetch(t, options, from, map[string]string{
		"manifests/one.yaml": "1", "manifests/two.yaml": "2", "one.yaml": "3", "chart.bin": "\x00\x01", "manifests/crds/One.yaml": "4",
	})

	if diff := cmp.Diff(from, resolved); diff != "" {
		t.Errorf("resolved source, -want +got:\n%s", diff)
	}

	mustFail(t, "one of the two would be lost", options, configMaps(configMap("a", "x"), configMap("b", "x/.")), true,
		"the ConfigMaps a and b both contain x/one.yaml: give one of them another path")
	mustFail(t, "some file systems cannot hold both", options, configMaps(configMap("a", ""), configMap("c", "")), true, "differ only in upper and lower case")
	mustFail(t, "it may be created later", options, configMaps(configMap("missing", "")), false, "the ConfigMap missing does not exist in the namespace bundles: create it")

	for _, path := range []string{"..", "../x", "/x", "a/../../b"} {
		mustFail(t, "it is outside the bundle", options, configMaps(configMap("a", path)), true, "leaves the bundle")
	}
}

// TestUpload checks that the content is pending until it is uploaded.
func TestUpload(t *testing.T) {
	uploads, err := store.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer uploads.Close()

	options := source.Options{Uploads: uploads}
	from := v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{}}

	result, files, err := fetch(t, options, from)
	if err != nil || result.Pending != "waiting for the upload of the content" || len(files) > 0 {
		t.Errorf("before the upload: %+v, %v, %v", result, files, err)
	}

	for i, content := range []map[string]string{{"a": "1"}, {"b": "2"}} {
		if _, err := uploads.PutUpload("sample", bytes.NewReader(packed(t, content)), 1000); err != nil {
			t.Fatal(err)
		}

		if resolved := mustFetch(t, options, from, content); resolved.Upload == nil {
			t.Errorf("upload %d: resolved to %+v", i, resolved)
		}
	}

	archive := packed(t, map[string]string{"b": "2"})
	sum := sha256.Sum256(archive)
	digest := hex.EncodeToString(sum[:])
	pinned := v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{SHA256: digest}}

	if resolved := mustFetch(t, options, pinned, map[string]string{"b": "2"}); resolved.Upload.SHA256 != digest {
		t.Errorf("the expected digest: resolved to %+v", resolved)
	}

	if _, err := uploads.PutUpload("sample", bytes.NewReader(packed(t, map[string]string{"b": "3"})), 1000); err != nil {
		t.Fatal(err)
	}

	mustFail(t, "the upload is another archive", options, pinned, true, "instead of "+digest)

	if _, err := uploads.PutUpload("sample", bytes.NewReader([]byte("no archive")), 1000); err != nil {
		t.Fatal(err)
	}

	mustFail(t, "the client has to upload another file", options, from, true, "the upload has content that is not accepted: not a valid tar archive")

	mustFail(t, "the volume may come back", source.Options{Uploads: failing{}}, from, false, "the upload cannot be read")
}

// failing returns an error for each upload.
type failing struct{}

// OpenUpload implements source.Uploads.
func (failing) OpenUpload(string) (io.ReadSeekCloser, int64, error) { return nil, 0, fs.ErrPermission }
