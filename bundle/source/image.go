package source

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	largestManifest = 4 << 20
	maxLayers       = 128

	dockerImage = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList  = "application/vnd.docker.distribution.manifest.list.v2+json"
	// dockerConfig is the media type of the configuration in images that Docker builds.
	dockerConfig = "application/vnd.docker.container.image.v1+json"

	dockerHub = "docker.io"
	dockerKey = ".dockerconfigjson"
)

// imageSource fetches OCI images and artifacts.
type imageSource struct {
	options Options
	objects objects
}

// Fetch implements Fetcher. The resolved source contains the digest to which the tag currently refers. If the reference contains a
// digest, the image is fetched by the digest and the tag is ignored. Signatures are verified for the digest that is fetched.
func (s *imageSource) Fetch(ctx context.Context, request Request, into *os.Root) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()

	source := *request.Source.Image

	reference, err := parseReference(source.Ref)
	if err != nil {
		return Result{}, err
	}

	keys, err := s.keys(ctx, source)
	if err != nil {
		return Result{}, err
	}

	client, err := newClient(source.InsecureSkipTLSVerify, source.CertificateData)
	if err != nil {
		return Result{}, err
	}
	defer client.CloseIdleConnections()

	repository, err := s.repository(ctx, reference, source.ImagePullSecretName, client)
	if err != nil {
		return Result{}, err
	}

	image := &image{repository: repository, limits: s.options.Limits, host: reference.Registry}

	found, err := repository.Resolve(ctx, reference.ReferenceOrDefault())
	if err != nil {
		return Result{}, image.explain(err)
	}

	if err := image.verify(ctx, found, keys); err != nil {
		return Result{}, err
	}

	if err := image.fetch(ctx, found, into); err != nil {
		return Result{}, unpacked(err, "the image")
	}

	reference.Reference = found.Digest.String()
	source.Ref = reference.String()

	return Result{Resolved: v1alpha1.BundleSource{Type: v1alpha1.SourceTypeImage, Image: &source}}, nil
}

// parseReference parses a reference. As with container runtimes, a reference without a registry refers to Docker Hub.
func parseReference(text string) (registry.Reference, error) {
	host, rest, found := strings.Cut(text, "/")

	switch {
	case !found:
		text = dockerHub + "/library/" + text
	case !strings.ContainsAny(host, ".:") && host != "localhost":
		text = dockerHub + "/" + host + "/" + rest
	}

	reference, err := registry.ParseReference(text)
	if err != nil {
		return reference, terminal("source.image.ref is not a valid image reference: write REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@DIGEST")
	}

	return reference, nil
}

// repository returns a client for the image's repository. As with container runtimes, a registry on the local machine is used
// without TLS, unless the source contains TLS settings.
func (s *imageSource) repository(ctx context.Context, reference registry.Reference, pullSecret string, client *http.Client) (*remote.Repository, error) {
	repository := &remote.Repository{Reference: reference}
	authorized := &auth.Client{Client: client, Cache: auth.NewCache()}

	if pullSecret != "" {
		secret, err := s.objects.secret(ctx, pullSecret, dockerKey)
		if err != nil {
			return nil, err
		}

		store, err := credentials.NewMemoryStoreFromDockerConfig(secret[dockerKey])
		if err != nil {
			return nil, transient("the Secret %s contains no valid %s", pullSecret, dockerKey)
		}

		authorized.Credential = credentials.Credential(store)
	}

	transport, ok := client.Transport.(*http.Transport)
	verifies := ok && transport.TLSClientConfig.RootCAs == nil && !transport.TLSClientConfig.InsecureSkipVerify
	repository.PlainHTTP = verifies && local(reference.Registry)
	repository.Client = authorized

	return repository, nil
}

// local reports whether a registry runs on the local machine.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}

	address := net.ParseIP(host)

	return host == "localhost" || address != nil && address.IsLoopback()
}

// image fetches one OCI image or artifact.
type image struct {
	repository *remote.Repository
	limits     archive.Limits
	host       string
}

// fetch writes the files of the image with the descriptor found to the folder into.
func (i *image) fetch(ctx context.Context, found ocispec.Descriptor, into *os.Root) error {
	manifest, err := i.manifest(ctx, found)
	if err != nil {
		return err
	}

	if err := i.check(manifest.Layers); err != nil {
		return err
	}

	if kind := manifest.Config.MediaType; kind != ocispec.MediaTypeImageConfig && kind != dockerConfig {
		return i.artifact(ctx, manifest.Layers, into)
	}

	tree := archive.NewTree(into, i.limits)

	for _, layer := range manifest.Layers {
		apply := func(from io.Reader) error { return tree.Layer(ctx, from) }
		if err := i.layer(ctx, layer, apply); err != nil {
			return errors.Join(err, tree.Close())
		}
	}

	return tree.Close()
}

// artifact extracts the layer of an artifact, which must have exactly one.
func (i *image) artifact(ctx context.Context, layers []ocispec.Descriptor, into *os.Root) error {
	if len(layers) != 1 {
		return terminal("the artifact must have one layer, but has %d", len(layers))
	}

	return i.layer(ctx, layers[0], func(from io.Reader) error { return archive.Extract(ctx, from, into, i.limits) })
}

// manifest returns the manifest of an image. If the image is an index, the chosen manifest does not depend on the platform of this
// machine, because a bundle must have the same content everywhere.
func (i *image) manifest(ctx context.Context, found ocispec.Descriptor) (ocispec.Manifest, error) {
	var manifest ocispec.Manifest

	switch found.MediaType {
	case ocispec.MediaTypeImageManifest, dockerImage:
		err := i.decode(ctx, found, &manifest)

		return manifest, err
	case ocispec.MediaTypeImageIndex, dockerList:
	default:
		return manifest, terminal("the reference names neither an image nor an artifact: the media type is %q", found.MediaType)
	}

	var index ocispec.Index
	if err := i.decode(ctx, found, &index); err != nil {
		return manifest, err
	}

	chosen := choose(index)
	if chosen.MediaType != ocispec.MediaTypeImageManifest && chosen.MediaType != dockerImage {
		return manifest, terminal("the image index does not list any images")
	}

	err := i.decode(ctx, chosen, &manifest)

	return manifest, err
}

// choose returns the image for linux/amd64 from an index, or the first image if there is none for this platform. Entries with the platform
// "unknown" are attestations, not images.
func choose(index ocispec.Index) ocispec.Descriptor {
	chosen := ocispec.Descriptor{}

	for _, entry := range index.Manifests {
		platform := entry.Platform
		if platform == nil {
			platform = &ocispec.Platform{}
		}

		if platform.OS == "linux" && platform.Architecture == "amd64" {
			return entry
		}

		if chosen.Digest == "" && platform.OS != "unknown" {
			chosen = entry
		}
	}

	return chosen
}

// decode fetches the manifest with the descriptor found, verifies its digest, and decodes it.
func (i *image) decode(ctx context.Context, found ocispec.Descriptor, into any) error {
	if found.Size > largestManifest {
		return terminal("the image manifest is larger than %d MiB", largestManifest>>20)
	}

	text, err := content.FetchAll(ctx, i.repository, found)
	if err != nil {
		return i.explain(err)
	}

	if err := json.Unmarshal(text, into); err != nil {
		return terminal("the manifest of the image is not JSON")
	}

	return nil
}

// check rejects layers that are too large, or that have an unsupported digest or format, so that they are not downloaded.
func (i *image) check(layers []ocispec.Descriptor) error {
	left := i.limits.CompressedBytes

	if len(layers) > maxLayers {
		return terminal("the image has %d layers; at most %d are permitted", len(layers), maxLayers)
	}

	for _, layer := range layers {
		if layer.Size < 0 || layer.Size > left {
			return terminal("the layers of the image have more than %d bytes", i.limits.CompressedBytes)
		}
		left -= layer.Size

		switch {
		case layer.Digest.Validate() != nil || layer.Digest.Algorithm() != digest.SHA256:
			return terminal("a layer of the image has no sha256 digest")
		case strings.HasSuffix(layer.MediaType, "zstd"):
			return terminal("a layer of the image is compressed with zstd, which is not supported: rebuild the image with gzip-compressed layers")
		case !strings.Contains(layer.MediaType, "tar"):
			return terminal("a layer of the image is not a tar archive: its media type is %q", layer.MediaType)
		}
	}

	return nil
}

// layer reads a layer and verifies its digest. A wrong digest takes precedence over faults of the content, because the damaged
// content may be the only reason for the faults.
func (i *image) layer(ctx context.Context, layer ocispec.Descriptor, read func(io.Reader) error) error {
	body, err := i.repository.Blobs().Fetch(ctx, layer)
	if err != nil {
		return i.explain(err)
	}
	defer body.Close() //nolint:errcheck // It has been read only.

	sum := sha256.New()
	verified := io.TeeReader(io.LimitReader(body, layer.Size), sum)

	applied := read(verified)
	if applied != nil && !Terminal(applied) {
		return applied
	}

	if _, err := io.Copy(io.Discard, verified); err != nil {
		return fmt.Errorf("reading a layer: %w", err)
	}

	if got := digest.NewDigest(digest.SHA256, sum); got != layer.Digest {
		return transient("a layer of the image was damaged in transit: it has the digest %s instead of %s", got, layer.Digest)
	}

	return applied
}

// explain converts an error from the registry to a message for users. It does not quote the registry's response.
func (i *image) explain(err error) error {
	response, responded := errors.AsType[*errcode.ErrorResponse](err)

	switch {
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return transient("%s requires credentials: name a Secret in source.image.pullSecret", i.host)
	case errors.Is(err, errdef.ErrNotFound):
		return transient("%s has no image %s", i.host, i.repository.Reference.Repository)
	case responded:
		return rejected(i.host, response.StatusCode)
	case errors.Is(err, errdef.ErrSizeExceedsLimit), errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData):
		return failure.Wrap(failure.Transient, err, "%s sent a different manifest than it had announced", i.host)
	default:
		return unreachable(i.host, err)
	}
}
