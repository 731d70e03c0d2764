package source

import (
	"cmp"
	"context"
	"crypto"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

const (
	maxKeys     = 16
	largestKeys = 64 << 10
	// defaultKey is the name of the public key file that cosign writes.
	defaultKey = "cosign.pub"
)

// publicKey contains the verifiers for one public key: simple for cosign payloads, which are always signed with SHA-256, and
// bundle for Sigstore bundles.
type publicKey struct{ simple, bundle signature.Verifier }

// CheckKeys fails if the file cannot be used as Options.KeysFile.
func CheckKeys(file string) error {
	_, err := readKeys(file)

	return err
}

func readKeys(file string) ([]publicKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the public keys: %w", err)
	}

	return parseKeys(text)
}

// parseKeys parses public keys in PEM form. Its errors do not quote the text, because somebody may have supplied a private key by
// mistake.
func parseKeys(text []byte) ([]publicKey, error) {
	var keys []publicKey

	if len(text) > largestKeys {
		return nil, fmt.Errorf("the public keys have more than %d KiB", largestKeys>>10)
	}

	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		parsed, err := cryptoutils.UnmarshalPEMToPublicKey(pem.EncodeToMemory(block))
		if err != nil {
			return nil, errors.New("the file contains something other than public keys in PEM form")
		}

		key, err := newKey(parsed)
		if err != nil {
			return nil, err
		}

		if keys = append(keys, key); len(keys) > maxKeys {
			return nil, fmt.Errorf("there are more than %d public keys", maxKeys)
		}
	}

	if len(keys) == 0 {
		return nil, errors.New("there is no public key in PEM form")
	}

	return keys, nil
}

func newKey(parsed crypto.PublicKey) (publicKey, error) {
	// This call also rejects key types and sizes that Sigstore does not support.
	bundle, err := signature.LoadDefaultVerifier(parsed)
	if err != nil {
		return publicKey{}, errors.New("a public key is not supported: use ECDSA P-256, P-384 or P-521, Ed25519, or RSA with 2048, 3072 or 4096 bits")
	}

	simple, err := signature.LoadVerifier(parsed, crypto.SHA256)
	if err != nil {
		return publicKey{}, errors.New("a public key is not supported")
	}

	return publicKey{simple, bundle}, nil
}

// keys returns up to two lists of public keys: one from the operator and one from the source. From each list, at least one key must have
// signed the image.
func (s *imageSource) keys(ctx context.Context, source v1alpha1.ImageSource) ([][]publicKey, error) {
	var lists [][]publicKey

	if s.options.KeysFile != "" {
		keys, err := readKeys(s.options.KeysFile)
		if err != nil {
			return nil, transient("the public keys that the provisioner requires (APP_SOURCES_IMAGE_KEYS_FILE) cannot be used: %v", err)
		}

		lists = append(lists, keys)
	}

	if source.Verification == nil {
		return lists, nil
	}

	origin, text, err := s.keysOf(ctx, *source.Verification)
	if err != nil {
		return nil, err
	}

	keys, err := parseKeys(text)
	if err != nil {
		return nil, transient("%s is not usable: %v", origin, err)
	}

	return append(lists, keys), nil
}

// keysOf reads the public keys that the verification names. origin describes where they come from, for messages.
func (s *imageSource) keysOf(ctx context.Context, verification v1alpha1.ImageVerification) (origin string, text []byte, err error) {
	switch {
	case verification.ConfigMap != nil:
		reference := *verification.ConfigMap
		reference.Key = cmp.Or(reference.Key, defaultKey)

		object := &corev1.ConfigMap{}
		if err := s.objects.get(ctx, "ConfigMap", reference.Name, object); err != nil {
			return "", nil, err
		}

		text, found := object.Data[reference.Key]
		if !found {
			return "", nil, transient("the ConfigMap %s has no key %s", reference.Name, reference.Key)
		}

		return "the key " + reference.Key + " of the ConfigMap " + reference.Name, []byte(text), nil
	case verification.Secret != nil:
		reference := *verification.Secret
		reference.Key = cmp.Or(reference.Key, defaultKey)

		data, err := s.objects.secret(ctx, reference.Name, reference.Key)

		return "the key " + reference.Key + " of the Secret " + reference.Name, data[reference.Key], err
	default:
		return "", nil, terminal("source.image.verification must name a Secret or a ConfigMap")
	}
}
