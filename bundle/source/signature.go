package source

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// Cosign stores signatures in the repository of the image: in an image with a tag that contains the digest, or in OCI 1.1 referrers.
const (
	// simpleSigning is the media type of a payload. signatureText is the annotation that contains its signature.
	simpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureText = "dev.cosignproject.cosign/signature"
	// signatureArtifact is the artifact type of referrers that contain payloads. sigstoreBundle is the artifact type of referrers that
	// contain a Sigstore bundle.
	signatureArtifact = "application/vnd.dev.cosign.artifact.sig.v1+json"
	sigstoreBundle    = "application/vnd.dev.sigstore.bundle.v0.3+json"
)

// Limits for the signature data that is read from a registry for one image.
const (
	largestSignatures = 1 << 20
	largestPayload    = 64 << 10
	maxSignatures     = 64
	maxReferrerPages  = 16
)

// SignatureError reports that a required signature of an image is missing or invalid.
type SignatureError struct {
	// Reason is the reason to set in the Unpacked condition.
	Reason string
	text   string
}

// Error implements error.
func (e *SignatureError) Error() string { return e.text }

// signed is a signature that a registry has sent.
type signed interface {
	// by reports whether the key made the signature. about reports whether the signature is for the image. The result of about is
	// meaningful only if by returns true for some key.
	by(key publicKey) bool
	about(image digest.Digest) bool
}

// verify fails unless, for each list, at least one key of the list has signed the image.
func (i *image) verify(ctx context.Context, found ocispec.Descriptor, lists [][]publicKey) error {
	if len(lists) == 0 {
		return nil
	}

	signatures := &signatures{image: i, found: found, left: maxSignatures}

	for _, collect := range []func(context.Context) error{signatures.tagged, signatures.referring} {
		if err := collect(ctx); err != nil {
			return err
		}

		if signatures.satisfy(lists) == "" {
			return nil
		}
	}

	if len(signatures.all) == 0 {
		return &SignatureError{v1alpha1.ReasonSignatureMissing, "the image " + found.Digest.String() + " has no signature: sign it with cosign"}
	}

	return invalidSignature("the image %s is not accepted: %s", found.Digest, signatures.satisfy(lists))
}

func invalidSignature(format string, args ...any) error {
	return &SignatureError{v1alpha1.ReasonSignatureInvalid, fmt.Sprintf(format, args...)}
}

// signatures collects the signatures of one image.
type signatures struct {
	image *image
	found ocispec.Descriptor
	all   []signed
	// left is the number of signatures and referrers that may still be read.
	left int
}

// satisfy returns an empty string if each list contains a key that has signed the image. Otherwise it describes the missing
// signature.
func (s *signatures) satisfy(lists [][]publicKey) string {
	for _, keys := range lists {
		problem := "no public key verifies any of its signatures"

		for _, one := range s.all {
			for _, key := range keys {
				switch {
				case !one.by(key):
				case one.about(s.found.Digest):
					problem = ""
				case problem != "":
					problem = "the signatures that the public keys verify are for other images"
				}
			}
		}

		if problem != "" {
			return problem
		}
	}

	return ""
}

// tagged reads the cosign signatures from the image that is stored under the tag with the signed image's digest.
func (s *signatures) tagged(ctx context.Context) error {
	tag := string(s.found.Digest.Algorithm()) + "-" + s.found.Digest.Encoded() + ".sig"

	manifest, err := s.image.repository.Resolve(ctx, tag)

	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return nil
	case err != nil:
		return s.image.explain(err)
	default:
		return s.manifest(ctx, manifest)
	}
}

// errEnough stops the listing of referrers once enough signatures have been found.
var errEnough = errors.New("enough")

// referring reads the signatures that are attached to the image as OCI referrers. If the registry does not support the referrers
// API, there are none.
func (s *signatures) referring(ctx context.Context) error {
	s.image.repository.ReferrerListMaxPages = maxReferrerPages

	var manifests []ocispec.Descriptor

	err := s.image.repository.Referrers(ctx, s.found, "", func(page []ocispec.Descriptor) error {
		for _, one := range page {
			if one.ArtifactType != signatureArtifact && one.ArtifactType != sigstoreBundle {
				continue
			}

			if manifests = append(manifests, one); len(manifests) >= maxSignatures {
				return errEnough
			}
		}

		return nil
	})

	response, responded := errors.AsType[*errcode.ErrorResponse](err)

	switch {
	case err == nil, errors.Is(err, errEnough), errors.Is(err, errdef.ErrTooManyPages), errors.Is(err, errdef.ErrNotFound):
	case responded && (response.StatusCode == http.StatusBadRequest || response.StatusCode == http.StatusMethodNotAllowed):
	default:
		return s.image.explain(err)
	}

	for _, manifest := range manifests {
		if s.left--; s.left < 0 {
			break
		}

		if err := s.manifest(ctx, manifest); err != nil {
			return err
		}
	}

	return nil
}

// manifest reads those layers of a manifest that contain signatures.
func (s *signatures) manifest(ctx context.Context, found ocispec.Descriptor) error {
	if found.MediaType != ocispec.MediaTypeImageManifest && found.MediaType != dockerImage {
		return nil
	}

	if found.Size > largestSignatures {
		return invalidSignature("the manifest of the signatures is larger than 1 MiB")
	}

	var manifest ocispec.Manifest
	if err := s.image.decode(ctx, found, &manifest); err != nil {
		return err
	}

	for _, layer := range manifest.Layers {
		if layer.MediaType != simpleSigning && layer.MediaType != sigstoreBundle {
			continue
		}

		if s.left--; s.left < 0 {
			return nil
		}

		one, err := s.layer(ctx, layer)
		if err != nil {
			return err
		}

		s.all = append(s.all, one)
	}

	return nil
}

// layer reads the signature from a layer.
func (s *signatures) layer(ctx context.Context, layer ocispec.Descriptor) (signed, error) {
	if valid := layer.Digest.Validate() == nil && layer.Digest.Algorithm() == digest.SHA256; !valid || layer.Size > largestPayload {
		return invalidSigned{}, nil
	}

	text, err := content.FetchAll(ctx, s.image.repository, layer)
	if err != nil {
		return nil, s.image.explain(err)
	}

	if layer.MediaType == sigstoreBundle {
		return parseSigstoreBundle(text), nil
	}

	signature, err := base64.StdEncoding.DecodeString(layer.Annotations[signatureText])
	if err != nil {
		return invalidSigned{}, nil //nolint:nilerr // another layer may be a signature
	}

	return simpleSigned{text, signature}, nil
}

// invalidSigned stands for a signature that cannot be parsed. No key verifies it.
type invalidSigned struct{}

func (invalidSigned) by(publicKey) bool        { return false }
func (invalidSigned) about(digest.Digest) bool { return false }

// simpleSigned is a cosign payload and its signature.
type simpleSigned struct{ payload, signature []byte }

func (s simpleSigned) by(key publicKey) bool {
	return key.simple.VerifySignature(bytes.NewReader(s.signature), bytes.NewReader(s.payload)) == nil
}

func (s simpleSigned) about(image digest.Digest) bool { return parsePayload(s.payload) == image }
