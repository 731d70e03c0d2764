package source_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/source"
)

const artifactConfig = "application/vnd.oci.empty.v1+json"

// images is a registry with the repository team/app.
type images struct {
	*httptest.Server

	// intercept handles a request instead of the registry if it returns true.
	intercept func(w http.ResponseWriter, r *http.Request) bool
	blobs     atomic.Int32
}

// newImages starts a registry with HTTP or HTTPS, depending on the start function.
func newImages(t *testing.T, start func(http.Handler) *httptest.Server) *images {
	t.Helper()

	i := &images{intercept: func(http.ResponseWriter, *http.Request) bool { return false }}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))

	i.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			i.blobs.Add(1)
		}

		if !i.intercept(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(i.Close)

	return i
}

// ref returns a reference to the repository.
func (i *images) ref(tag string) string { return i.Listener.Addr().String() + "/team/app" + tag }

func (i *images) image(tag string, change ...func(*v1alpha1.ImageSource)) v1alpha1.BundleSource {
	from := &v1alpha1.ImageSource{Ref: i.ref(tag)}
	for _, change := range change {
		change(from)
	}

	return v1alpha1.BundleSource{Type: v1alpha1.SourceTypeImage, Image: from}
}

// pushBlob stores content.
func (i *images) pushBlob(t *testing.T, mediaType string, content []byte) ocispec.Descriptor {
	t.Helper()

	found := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	if err := i.repository(t).Push(t.Context(), found, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}

	return found
}

func (i *images) repository(t *testing.T) *remote.Repository {
	t.Helper()

	repository, err := remote.NewRepository(i.ref(""))
	if err != nil {
		t.Fatal(err)
	}

	repository.PlainHTTP = strings.HasPrefix(i.URL, "http://")
	repository.Client = i.Client()

	return repository
}

// push stores an image or an artifact with the layers, and returns its manifest.
func (i *images) push(t *testing.T, tag, config string, layers ...ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()

	return i.pushManifest(t, tag, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: i.pushBlob(t, config, []byte("{}")), Layers: layers,
	})
}

func (i *images) pushManifest(t *testing.T, tag, mediaType string, manifest any) ocispec.Descriptor {
	t.Helper()

	content, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}

	found := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	if err := i.repository(t).PushReference(t.Context(), found, bytes.NewReader(content), tag); err != nil {
		t.Fatal(err)
	}

	return found
}

func (i *images) layer(t *testing.T, files map[string]string) ocispec.Descriptor {
	t.Helper()

	return i.pushBlob(t, ocispec.MediaTypeImageLayerGzip, packed(t, files))
}

// TestImage checks a root file system with whiteouts. A moved tag does not change a pinned image.
func TestImage(t *testing.T) {
	images := newImages(t, httptest.NewServer)
	lower := images.layer(t, map[string]string{"manifests/a.yaml": "old", "manifests/b.yaml": "b", "metadata/x": "x"})
	upper := images.layer(t, map[string]string{"manifests/a.yaml": "new", "manifests/.wh.b.yaml": "", "metadata/.wh..wh..opq": "", "metadata/y": "y"})
	pushed := images.push(t, "v1", ocispec.MediaTypeImageConfig, lower, upper)
	want := map[string]string{"manifests/a.yaml": "new", "metadata/y": "y"}

	pinned := mustFetch(t, source.Options{}, images.image(":v1"), want)
	if expected := images.ref("@" + pushed.Digest.String()); pinned.Image.Ref != expected {
		t.Errorf("resolved to %s, want %s", pinned.Image.Ref, expected)
	}

	images.push(t, "v1", ocispec.MediaTypeImageConfig, images.layer(t, map[string]string{"moved": "x"}))

	if again := mustFetch(t, source.Options{}, pinned, want); again.Image.Ref != pinned.Image.Ref {
		t.Errorf("the pinned image is resolved to %s", again.Image.Ref)
	}

	mustFetch(t, source.Options{}, images.image(":v1@"+pushed.Digest.String()), want)
	mustFetch(t, source.Options{}, images.image(":v1"), map[string]string{"moved": "x"})
}

// TestImageForms checks artifacts, indexes and Docker images.
func TestImageForms(t *testing.T) {
	images := newImages(t, httptest.NewServer)
	files := map[string]string{"manifests/a.yaml": "a", ".wh.b": "kept"}
	layer := images.pushBlob(t, "application/vnd.cncf.helm.chart.content.v1.tar+gzip", packed(t, files))

	images.push(t, "latest", artifactConfig, layer)
	mustFetch(t, source.Options{}, images.image(""), files)

	other := images.push(t, "arm", ocispec.MediaTypeImageConfig, images.layer(t, map[string]string{"arm": ""}))
	amd := images.push(t, "amd", "application/vnd.docker.container.image.v1+json", images.layer(t, map[string]string{"amd": ""}))
	unknown := images.push(t, "signature", artifactConfig, layer)
	unknown.Platform = &ocispec.Platform{OS: "unknown", Architecture: "unknown"}
	other.Platform = &ocispec.Platform{OS: "linux", Architecture: "arm64"}
	amd.Platform = &ocispec.Platform{OS: "linux", Architecture: "amd64"}

	for want, manifests := range map[string][]ocispec.Descriptor{"amd": {unknown, other, amd}, "arm": {unknown, other}} {
		pushed := images.pushManifest(t, "index", ocispec.MediaTypeImageIndex, ocispec.Index{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: manifests,
		})

		pinned := mustFetch(t, source.Options{}, images.image(":index"), map[string]string{want: ""})
		if pinned.Image.Ref != images.ref("@"+pushed.Digest.String()) {
			t.Errorf("resolved to %s", pinned.Image.Ref)
		}
	}
}

// TestInvalidImages checks that images are rejected because of their manifests, before any layer is read.
func TestInvalidImages(t *testing.T) {
	images := newImages(t, httptest.NewServer)
	layer := images.layer(t, map[string]string{"a": "x"})
	huge, zstd, chart, wrong := layer, layer, layer, layer
	huge.Size, zstd.MediaType, chart.MediaType = 1<<30, ocispec.MediaTypeImageLayerZstd, "application/json"
	wrong.Digest = "sha256:../../x"

	many := make([]ocispec.Descriptor, 129)
	for i := range many {
		many[i] = layer
	}

	for name, test := range map[string]struct {
		reason string
		push   func(tag string)
		want   string
	}{
		"huge": {
			"a layer of 1 GiB is not read", func(tag string) { images.push(t, tag, ocispec.MediaTypeImageConfig, huge) },
			"have more than 134217728 bytes",
		},
		"sum": {"layers share the limit", func(tag string) {
			half := layer
			half.Size = 100 << 20
			images.push(t, tag, artifactConfig, half, half)
		}, "have more than 134217728 bytes"},
		"many": {"each layer takes time", func(tag string) { images.push(t, tag, ocispec.MediaTypeImageConfig, many...) }, "has 129 layers"},
		"zstd": {"the author can choose another compression", func(tag string) {
			images.push(t, tag, ocispec.MediaTypeImageConfig, zstd)
		}, "rebuild the image with gzip-compressed layers"},
		"no tar": {"the artifact is something else", func(tag string) { images.push(t, tag, artifactConfig, chart) }, `its media type is "application/json"`},
		"digest": {"the digest is part of an address", func(tag string) { images.push(t, tag, artifactConfig, wrong) }, "no sha256 digest"},
		"layers": {"their order has no meaning", func(tag string) { images.push(t, tag, artifactConfig, layer, layer) }, "must have one layer, but has 2"},
		"no image": {"an index may contain anything", func(tag string) {
			images.pushManifest(t, tag, ocispec.MediaTypeImageIndex, ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}})
		}, "does not list any images"},
		"hostile": {"it is outside the bundle", func(tag string) {
			images.push(t, tag, ocispec.MediaTypeImageConfig, images.layer(t, map[string]string{"../x": ""}))
		}, `the path "../x" is outside the folder`},
	} {
		t.Run(name, func(t *testing.T) {
			tag := strings.ReplaceAll(name, " ", "-")
			test.push(tag)
			images.blobs.Store(0)
			mustFail(t, test.reason, source.Options{}, images.image(":"+tag), true, test.want)

			if read := images.blobs.Load(); name != "hostile" && read > 0 {
				t.Errorf("%d blobs were read", read)
			}
		})
	}

	for _, ref := range []string{"", "a b", "host.example/UPPER", "host.example/x:tag@sha256:1"} {
		from := v1alpha1.BundleSource{Type: v1alpha1.SourceTypeImage, Image: &v1alpha1.ImageSource{Ref: ref}}
		mustFail(t, "it is no reference", source.Options{}, from, true, "is not a valid image reference")
	}
}

// TestDamagedImages checks that damage in transit is not reported as a fault of the image.
func TestDamagedImages(t *testing.T) {
	images := newImages(t, httptest.NewServer)
	content := packed(t, map[string]string{"a": strings.Repeat("x", 1000)})
	images.push(t, "v1", ocispec.MediaTypeImageConfig, images.pushBlob(t, ocispec.MediaTypeImageLayerGzip, content))

	release := make(chan struct{})
	defer close(release)

	for name, test := range map[string]struct {
		respond func(w http.ResponseWriter)
		want    string
	}{
		"flipped": {func(w http.ResponseWriter) { damaged := bytes.Clone(content); damaged[30] ^= 1; w.Write(damaged) }, "was damaged in transit"},
		"cut":     {func(w http.ResponseWriter) { w.Write(content[:20]) }, "unexpected EOF"},
		"slow": {
			func(w http.ResponseWriter) { w.Write(content[:20]); http.NewResponseController(w).Flush(); <-release },
			"did not send the content in time",
		},
		"status": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, "responds with status 502"},
	} {
		t.Run(name, func(t *testing.T) {
			images.intercept = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
					return false
				}

				if name != "status" {
					w.Header().Set("Content-Length", strconv.Itoa(len(content)))
				}

				test.respond(w)

				return true
			}

			if name == "slow" {
				mustTimeOut(t, "a later fetch may succeed", source.Options{}, images.image(":v1"))

				return
			}

			mustFail(t, "a later fetch may succeed", source.Options{}, images.image(":v1"), false, test.want)
		})
	}
}

// TestPrivateImages checks pull secrets. Credentials are sent only to their registry.
func TestPrivateImages(t *testing.T) {
	images := newImages(t, httptest.NewServer)
	files := map[string]string{"a": "a"}
	images.push(t, "v1", ocispec.MediaTypeImageConfig, images.layer(t, files))

	leaked := false
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked = leaked || r.Header.Get("Authorization") != ""
		w.Write(packed(t, files))
	}))
	t.Cleanup(storage.Close)

	images.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user != "reader" || password != hidden {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)

			return true
		}

		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, storage.URL, http.StatusTemporaryRedirect)

			return true
		}

		return false
	}

	dockerConfig := func(host string) map[string]string {
		login := base64.StdEncoding.EncodeToString([]byte("reader:" + hidden))

		return map[string]string{".dockerconfigjson": fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, login)}
	}

	options := source.Options{Reader: cluster{secrets: map[string]map[string]string{
		"right": dockerConfig(images.Listener.Addr().String()), "other": dockerConfig("example.com"),
		"broken": {".dockerconfigjson": "{" + hidden}, "empty": {"username": hidden},
	}}}
	with := func(secret string) func(*v1alpha1.ImageSource) {
		return func(from *v1alpha1.ImageSource) { from.ImagePullSecretName = secret }
	}

	pinned := mustFetch(t, options, images.image(":v1", with("right")), files)
	mustFetch(t, options, pinned, files)

	if leaked {
		t.Error("the credentials were sent to the storage of the registry")
	}

	mustFail(t, "no credentials", options, images.image(":v1"), false, "requires credentials: name a Secret in source.image.pullSecret")
	mustFail(t, "the credentials are for another registry", options, images.image(":v1", with("other")), false, "requires credentials")
	mustFail(t, "the Secret can be corrected", options, images.image(":v1", with("broken")), false, "contains no valid .dockerconfigjson")
	mustFail(t, "the Secret can be corrected", options, images.image(":v1", with("empty")), false, "has no key .dockerconfigjson")
	mustFail(t, "the image may be pushed later", options, images.image(":v2", with("right")), false, "has no image team/app")
}

// TestImagesWithTLS checks the settings for certificates.
func TestImagesWithTLS(t *testing.T) {
	images := newImages(t, httptest.NewTLSServer)
	files := map[string]string{"a": "a"}
	images.push(t, "v1", ocispec.MediaTypeImageConfig, images.layer(t, files))

	mustFetch(t, source.Options{}, images.image(":v1", func(from *v1alpha1.ImageSource) { from.InsecureSkipTLSVerify = true }), files)

	pinned := mustFetch(t, source.Options{}, images.image(":v1", func(from *v1alpha1.ImageSource) { from.CertificateData = certificate(images.Server) }), files)
	mustFetch(t, source.Options{}, pinned, files)

	mustFail(t, "it is no certificate", source.Options{}, images.image(":v1",
		func(from *v1alpha1.ImageSource) { from.CertificateData = "x" }), true, "certificateData contains no PEM certificate")

	images.Close()
	mustFail(t, "the registry may come back", source.Options{}, images.image(":v1",
		func(from *v1alpha1.ImageSource) { from.InsecureSkipTLSVerify = true }), false, "cannot be reached")
}
