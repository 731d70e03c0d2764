package source

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"

	"github.com/opencontainers/go-digest"
)

// FuzzSignature reads arbitrary payloads, Sigstore bundles and public keys. A payload must refer to at most one image, and no signature
// may be valid.
func FuzzSignature(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", `{"critical":null}`, `{"critical":{"image":{"docker-manifest-digest":"sha256:x"},"type":"cosign container image signature"}}`,
		`{"critical":{"identity":{"docker-reference":"a"},"image":{"docker-manifest-digest":"sha256:` + digest.FromString("x").Encoded() + `"},` +
			`"type":"cosign container image signature"}}`,
		`{"dsseEnvelope":{"payload":"bnVsbA==","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AAAA"},null]}}`,
		`{"dsseEnvelope":null}`, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
	} {
		f.Add([]byte(seed))
	}

	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}

	key, err := newKey(private.Public())
	if err != nil {
		f.Fatal(err)
	}

	one, other := digest.FromString("x"), digest.FromString("y")

	f.Fuzz(func(t *testing.T, text []byte) {
		simple, bundle := simpleSigned{text, text}, parseSigstoreBundle(text)
		if simple.about(one) && simple.about(other) {
			t.Error("the payload is about two images")
		}

		bundle.about(one)

		if simple.by(key) || bundle.by(key) {
			t.Error("nothing was signed by the key")
		}

		if keys, err := parseKeys(text); err == nil && (len(keys) == 0 || len(keys) > maxKeys) {
			t.Errorf("%d keys are accepted", len(keys))
		}
	})
}
