package source_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	corev1 "k8s.io/api/core/v1"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/source"
)

const (
	simpleSigning      = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureArtifact  = "application/vnd.dev.cosign.artifact.sig.v1+json"
	sigstoreBundle     = "application/vnd.dev.sigstore.bundle.v0.3+json"
	signaturePredicate = "https://sigstore.dev/cosign/sign/v1"
)

// signer is a private key.
type signer struct{ crypto.Signer }

// newSigner returns an ECDSA key.
func newSigner(t *testing.T) signer {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	return signer{key}
}

// public returns the public key in PEM form.
func (s signer) public(t *testing.T) string {
	t.Helper()

	text, err := x509.MarshalPKIXPublicKey(s.Public())
	if err != nil {
		t.Fatal(err)
	}

	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: text}))
}

// sign signs the text with the given hash function.
func (s signer) sign(t *testing.T, text []byte, hash crypto.Hash) []byte {
	t.Helper()

	if _, pure := s.Signer.(ed25519.PrivateKey); pure {
		hash = 0
	}

	message := text

	switch hash {
	case crypto.SHA256:
		sum := sha256.Sum256(text)
		message = sum[:]
	case crypto.SHA384:
		sum := sha512.Sum384(text)
		message = sum[:]
	}

	signature, err := s.Sign(rand.Reader, message, hash)
	if err != nil {
		t.Fatal(err)
	}

	return signature
}

// payload returns the text that cosign signs for an image.
func payload(image digest.Digest) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"registry.example/team/app"},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":null}`, image)
}

// signature stores a payload with its signature as a layer.
func (i *images) signature(t *testing.T, text, signature []byte) ocispec.Descriptor {
	t.Helper()

	layer := i.pushBlob(t, simpleSigning, text)
	layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)}

	return layer
}

// signed stores the signature of a key for an image as a layer.
func (i *images) signed(t *testing.T, image digest.Digest, by signer) ocispec.Descriptor {
	t.Helper()

	return i.signature(t, payload(image), by.sign(t, payload(image), crypto.SHA256))
}

// tag stores signatures of an image under the tag that cosign uses.
func (i *images) tag(t *testing.T, image digest.Digest, layers ...ocispec.Descriptor) {
	t.Helper()

	i.push(t, "sha256-"+image.Encoded()+".sig", ocispec.MediaTypeImageConfig, layers...)
}

// refer stores layers in a referrer of an image.
func (i *images) refer(t *testing.T, image ocispec.Descriptor, kind string, layers ...ocispec.Descriptor) {
	t.Helper()

	i.pushManifest(t, "referrer-"+layers[0].Digest.Encoded()[:12], ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: kind,
		Config: i.pushBlob(t, kind, []byte("{}")), Layers: layers, Subject: &image,
	})
}

// sigstore stores a Sigstore bundle with a signed statement as a layer.
func (i *images) sigstore(t *testing.T, image digest.Digest, predicate string, by signer, hash crypto.Hash) ocispec.Descriptor {
	t.Helper()

	const kind = "application/vnd.in-toto+json"

	statement := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","predicateType":%q,"subject":[{"digest":{"sha256":%q}}]}`,
		predicate, image.Encoded())
	encoded := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement)

	text, err := json.Marshal(map[string]any{
		"mediaType": sigstoreBundle, "verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": "x"}},
		"dsseEnvelope": map[string]any{
			"payload": statement, "payloadType": kind, "signatures": []map[string]any{{"sig": by.sign(t, encoded, hash)}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	return i.pushBlob(t, sigstoreBundle, text)
}

// newSignedImages starts a registry that supports the referrers API, or one that does not.
func newSignedImages(t *testing.T, referrers bool) *images {
	t.Helper()

	i := &images{intercept: func(http.ResponseWriter, *http.Request) bool { return false }}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers))

	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !i.intercept(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(i.Close)

	return i
}

// verified requires signatures of the keys in a ConfigMap.
func verified(from *v1alpha1.ImageSource) {
	from.Verification = &v1alpha1.ImageVerification{ConfigMap: &v1alpha1.PublicKeyReference{Name: "keys"}}
}

// keysOf returns options with the public keys in the ConfigMap and the Secret "keys".
func keysOf(texts ...string) source.Options {
	text := strings.Join(texts, "")

	return source.Options{Reader: cluster{
		configMaps: map[string]corev1.ConfigMap{"keys": {Data: map[string]string{"cosign.pub": text}}},
		secrets:    map[string]map[string]string{"keys": {"cosign.pub": text}},
	}}
}

// unsigned fetches a source that must fail with the given reason before a layer of the image is read.
func unsigned(t *testing.T, options source.Options, from v1alpha1.BundleSource, reason, want string) {
	t.Helper()

	_, _, err := fetch(t, options, from)

	refused, ok := errors.AsType[*source.SignatureError](err)
	if !ok || refused.Reason != reason || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want the reason %s with %q", err, reason, want)
	}

	if terminal := source.Terminal(err); terminal != (reason == v1alpha1.ReasonSignatureInvalid) {
		t.Errorf("%v: terminal is %v", err, terminal)
	}
}

// TestSignatures checks which signatures of an image are accepted.
func TestSignatures(t *testing.T) {
	const (
		missing = v1alpha1.ReasonSignatureMissing
		invalid = v1alpha1.ReasonSignatureInvalid
		foreign = "no public key verifies any of its signatures"
		others  = "are for other images"
	)

	ours, theirs := newSigner(t), newSigner(t)
	another := digest.FromString("another image")

	for name, test := range map[string]struct {
		reason string
		sign   func(i *images, image ocispec.Descriptor)
		// want is the expected reason of the condition. It is empty if the image is accepted.
		want, text string
	}{
		"valid": {"the key has signed the digest", func(i *images, image ocispec.Descriptor) {
			i.tag(t, image.Digest, i.signed(t, image.Digest, ours))
		}, "", ""},
		"missing": {"an image is signed after it is pushed", func(*images, ocispec.Descriptor) {}, missing, "has no signature"},
		"other key": {"anybody has some key", func(i *images, image ocispec.Descriptor) {
			i.tag(t, image.Digest, i.signed(t, image.Digest, theirs))
		}, invalid, foreign},
		"other image": {"a signature of a good image does not make another one good", func(i *images, image ocispec.Descriptor) {
			i.tag(t, image.Digest, i.signed(t, another, ours))
		}, invalid, others},
		"tampered": {"the payload is not what was signed", func(i *images, image ocispec.Descriptor) {
			i.tag(t, image.Digest, i.signature(t, payload(image.Digest), ours.sign(t, payload(another), crypto.SHA256)))
		}, invalid, foreign},
		"other type": {"the key has signed another kind of statement", func(i *images, image ocispec.Descriptor) {
			text := []byte(strings.Replace(string(payload(image.Digest)), "cosign container image signature", "a complaint", 1))
			i.tag(t, image.Digest, i.signature(t, text, ours.sign(t, text, crypto.SHA256)))
		}, invalid, others},
		"several": {"others may sign, too", func(i *images, image ocispec.Descriptor) {
			i.tag(t, image.Digest, i.signed(t, image.Digest, theirs), i.signed(t, another, ours), i.signed(t, image.Digest, ours))
		}, "", ""},
		"no base64": {"the annotation is anything", func(i *images, image ocispec.Descriptor) {
			layer := i.pushBlob(t, simpleSigning, payload(image.Digest))
			layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": "%"}
			i.tag(t, image.Digest, layer)
		}, invalid, foreign},
		"large payload": {"it is not read", func(i *images, image ocispec.Descriptor) {
			text := append(payload(image.Digest), strings.Repeat(" ", 64<<10)...)
			i.tag(t, image.Digest, i.signature(t, text, ours.sign(t, text, crypto.SHA256)))
		}, invalid, foreign},
		"huge manifest": {"it is not read", func(i *images, image ocispec.Descriptor) {
			layer := i.signed(t, image.Digest, ours)
			layer.Annotations["padding"] = strings.Repeat("x", 1<<20)
			i.tag(t, image.Digest, layer)
		}, invalid, "larger than 1 MiB"},
		"too many": {"only 64 are read", func(i *images, image ocispec.Descriptor) {
			layers := make([]ocispec.Descriptor, 64, 65)
			for n := range layers {
				layers[n] = i.signed(t, another, theirs)
			}
			i.tag(t, image.Digest, append(layers, i.signed(t, image.Digest, ours))...)
		}, invalid, foreign},
		"something else": {"a layer of another type is no signature", func(i *images, image ocispec.Descriptor) {
			i.tag(t, image.Digest, i.layer(t, map[string]string{"a": "b"}))
		}, missing, "has no signature"},
		"referrer": {"cosign can store signatures as referrers", func(i *images, image ocispec.Descriptor) {
			i.refer(t, image, signatureArtifact, i.signed(t, image.Digest, ours))
		}, "", ""},
		"referrer beside a tag": {"both places count", func(i *images, image ocispec.Descriptor) {
			i.tag(t, image.Digest, i.signed(t, image.Digest, theirs))
			i.refer(t, image, signatureArtifact, i.signed(t, image.Digest, ours))
		}, "", ""},
		"bundle": {"cosign 3 stores Sigstore bundles", func(i *images, image ocispec.Descriptor) {
			i.refer(t, image, sigstoreBundle, i.sigstore(t, image.Digest, signaturePredicate, ours, crypto.SHA256))
		}, "", ""},
		"bundle of another key": {"anybody has some key", func(i *images, image ocispec.Descriptor) {
			i.refer(t, image, sigstoreBundle, i.sigstore(t, image.Digest, signaturePredicate, theirs, crypto.SHA256))
		}, invalid, foreign},
		"bundle of another image": {"the subject of the referrer is not signed", func(i *images, image ocispec.Descriptor) {
			i.refer(t, image, sigstoreBundle, i.sigstore(t, another, signaturePredicate, ours, crypto.SHA256))
		}, invalid, others},
		"attestation": {"a list of defects approves nothing", func(i *images, image ocispec.Descriptor) {
			i.refer(t, image, sigstoreBundle, i.sigstore(t, image.Digest, "https://cosign.sigstore.dev/attestation/vuln/v1", ours, crypto.SHA256))
		}, invalid, others},
		"no bundle": {"a referrer has any content", func(i *images, image ocispec.Descriptor) {
			i.refer(t, image, sigstoreBundle, i.pushBlob(t, sigstoreBundle, []byte(`{"dsseEnvelope":3}`)))
		}, invalid, foreign},
	} {
		t.Run(name, func(t *testing.T) {
			images := newSignedImages(t, true)
			files := map[string]string{"manifests/a.yaml": "a"}
			image := images.push(t, "v1", ocispec.MediaTypeImageConfig, images.layer(t, files))
			test.sign(images, image)

			if test.want != "" {
				unsigned(t, keysOf(ours.public(t)), images.image(":v1", verified), test.want, test.text)

				return
			}

			pinned := mustFetch(t, keysOf(ours.public(t)), images.image(":v1", verified), files)
			if pinned.Image.Verification == nil || pinned.Image.Ref != images.ref("@"+image.Digest.String()) {
				t.Errorf("%s: resolved to %+v", test.reason, pinned.Image)
			}

			mustFetch(t, keysOf(ours.public(t)), pinned, files)
			unsigned(t, keysOf(newSigner(t).public(t)), pinned, invalid, "")
		})
	}
}

// TestSignatureCoversWhatIsFetched moves the tag between its resolution and the download. The downloaded content must have the verified
// digest.
func TestSignatureCoversWhatIsFetched(t *testing.T) {
	images, ours := newSignedImages(t, false), newSigner(t)
	files := map[string]string{"good": ""}
	good := images.push(t, "v1", ocispec.MediaTypeImageConfig, images.layer(t, files))
	bad := images.layer(t, map[string]string{"bad": ""})
	images.tag(t, good.Digest, images.signed(t, good.Digest, ours))

	moved := false
	images.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if !moved && strings.HasSuffix(r.URL.Path, ".sig") {
			moved = true
			images.push(t, "v1", ocispec.MediaTypeImageConfig, bad)
		}

		return false
	}

	mustFetch(t, keysOf(ours.public(t)), images.image(":v1", verified), files)

	if !moved {
		t.Error("no signature was read")
	}

	unsigned(t, keysOf(ours.public(t)), images.image(":v1", verified), v1alpha1.ReasonSignatureMissing, "")
}

// TestSignaturesOfIndexes checks that the signature of an index covers its images, but that the signature of an image does not
// cover an index.
func TestSignaturesOfIndexes(t *testing.T) {
	images, ours := newSignedImages(t, true), newSigner(t)
	files := map[string]string{"a": ""}
	image := images.push(t, "amd", ocispec.MediaTypeImageConfig, images.layer(t, files))
	image.Platform = &ocispec.Platform{OS: "linux", Architecture: "amd64"}
	index := images.pushManifest(t, "v1", ocispec.MediaTypeImageIndex, ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{image},
	})

	images.tag(t, image.Digest, images.signed(t, image.Digest, ours))
	unsigned(t, keysOf(ours.public(t)), images.image(":v1", verified), v1alpha1.ReasonSignatureMissing, index.Digest.String())

	images.tag(t, index.Digest, images.signed(t, index.Digest, ours))
	mustFetch(t, keysOf(ours.public(t)), images.image(":v1", verified), files)
}

// TestSignatureKeys checks which types of keys are supported, and where they can come from.
func TestSignatureKeys(t *testing.T) {
	images := newSignedImages(t, false)
	files := map[string]string{"a": ""}
	image := images.push(t, "v1", ocispec.MediaTypeImageConfig, images.layer(t, files))

	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}

	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}

	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	secret := func(from *v1alpha1.ImageSource) {
		from.Verification = &v1alpha1.ImageVerification{Secret: &v1alpha1.PublicKeyReference{Name: "keys", Key: "cosign.pub"}}
	}
	retired := newSigner(t)

	for name, key := range map[string]signer{"Ed25519": {edwards}, "RSA": {large}, "P-384": {curve}} {
		t.Run(name, func(t *testing.T) {
			images.tag(t, image.Digest, images.signed(t, image.Digest, key))
			mustFetch(t, keysOf(key.public(t)), images.image(":v1", secret), files)
			mustFetch(t, keysOf(retired.public(t), key.public(t)), images.image(":v1", verified), files)
			unsigned(t, keysOf(retired.public(t)), images.image(":v1", secret), v1alpha1.ReasonSignatureInvalid, "no public key verifies any of its signatures")
		})
	}

	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte(hidden)}))
	for text, want := range map[string]string{
		"":                                    "there is no public key in PEM form",
		hidden:                                "there is no public key in PEM form",
		private:                               "the file contains something other than public keys",
		signer{small}.public(t):               "a public key is not supported",
		strings.Repeat(retired.public(t), 17): "more than 16 public keys",
		strings.Repeat(" ", 64<<10+1):         "more than 64 KiB",
	} {
		mustFail(t, "the object can be corrected", keysOf(text), images.image(":v1", verified), false, want)
	}

	mustFail(t, "the object may be created", source.Options{Reader: cluster{}}, images.image(":v1", verified), false, "the ConfigMap keys does not exist")
	mustFail(t, "the object may be created", source.Options{Reader: cluster{}}, images.image(":v1", secret), false, "the Secret keys does not exist")
	mustFail(t, "the object can be corrected", keysOf(retired.public(t)), images.image(":v1", func(from *v1alpha1.ImageSource) {
		from.Verification = &v1alpha1.ImageVerification{ConfigMap: &v1alpha1.PublicKeyReference{Name: "keys", Key: "other.pub"}}
	}), false, "the ConfigMap keys has no key other.pub")
	mustFail(t, "admission is bypassed", keysOf(""), images.image(":v1", func(from *v1alpha1.ImageSource) {
		from.Verification = &v1alpha1.ImageVerification{}
	}), true, "must name a Secret or a ConfigMap")
}

// TestKeysOfTheOperator checks that a Bundle cannot replace the keys that the operator requires.
func TestKeysOfTheOperator(t *testing.T) {
	images, operator, author := newSignedImages(t, false), newSigner(t), newSigner(t)
	files := map[string]string{"a": ""}
	image := images.push(t, "v1", ocispec.MediaTypeImageConfig, images.layer(t, files))

	options := keysOf(author.public(t))
	options.KeysFile = filepath.Join(t.TempDir(), "keys.pem")

	if err := source.CheckKeys(options.KeysFile); err == nil {
		t.Error("a missing file is accepted")
	}

	mustFail(t, "the file may be mounted later", options, images.image(":v1"), false, "cannot be used")

	if err := os.WriteFile(options.KeysFile, []byte(operator.public(t)), 0o600); err != nil {
		t.Fatal(err)
	}

	if err := source.CheckKeys(options.KeysFile); err != nil {
		t.Error(err)
	}

	unsigned(t, options, images.image(":v1"), v1alpha1.ReasonSignatureMissing, "has no signature")

	images.tag(t, image.Digest, images.signed(t, image.Digest, author))
	unsigned(t, options, images.image(":v1"), v1alpha1.ReasonSignatureInvalid, "no public key verifies any of its signatures")
	unsigned(t, options, images.image(":v1", verified), v1alpha1.ReasonSignatureInvalid, "no public key verifies any of its signatures")

	images.tag(t, image.Digest, images.signed(t, image.Digest, operator))
	mustFetch(t, options, images.image(":v1"), files)
	unsigned(t, options, images.image(":v1", verified), v1alpha1.ReasonSignatureInvalid, "no public key verifies any of its signatures")

	images.tag(t, image.Digest, images.signed(t, image.Digest, author), images.signed(t, image.Digest, operator))
	mustFetch(t, options, images.image(":v1", verified), files)
}

// TestRegistriesOfSignatures checks registries that fail while signatures are read.
func TestRegistriesOfSignatures(t *testing.T) {
	images, ours := newSignedImages(t, true), newSigner(t)
	image := images.push(t, "v1", ocispec.MediaTypeImageConfig, images.layer(t, map[string]string{"a": ""}))

	respond := func(part string, status int) {
		images.intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, part) {
				return false
			}
			w.WriteHeader(status)

			return true
		}
	}
	from, options := images.image(":v1", verified), keysOf(ours.public(t))

	respond(".sig", http.StatusBadGateway)
	mustFail(t, "the registry may come back", options, from, false, "responds with status 502")
	respond("/referrers/", http.StatusBadGateway)
	mustFail(t, "the registry may come back", options, from, false, "responds with status 502")
	respond("/referrers/", http.StatusForbidden)
	mustFail(t, "the Secret can be corrected", options, from, false, "rejects the credentials")

	for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest} {
		respond("/referrers/", status)
		unsigned(t, options, from, v1alpha1.ReasonSignatureMissing, image.Digest.String())
	}

	// If the registry does not support referrers, clients store the list under a tag.
	respond("/referrers/", http.StatusNotFound)

	repository, err := remote.NewRepository(images.ref(""))
	if err != nil {
		t.Fatal(err)
	}

	repository.PlainHTTP = true

	layer := images.signed(t, image.Digest, ours)
	images.refer(t, image, signatureArtifact, layer)

	referrer, err := repository.Resolve(t.Context(), "referrer-"+layer.Digest.Encoded()[:12])
	if err != nil {
		t.Fatal(err)
	}

	referrer.ArtifactType = signatureArtifact
	images.pushManifest(t, "sha256-"+image.Digest.Encoded(), ocispec.MediaTypeImageIndex, ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{referrer},
	})
	mustFetch(t, options, from, map[string]string{"a": ""})
}
