package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// keySize is the length of an AES-256 key in bytes.
const keySize = 32

// ErrNoKeys reports that no key is configured. Its text explains how to create a key.
var ErrNoKeys = errors.New("no database secret key: create one with " +
	"`echo \"k1:$(openssl rand -base64 32)\"` and set APP_DATABASE_SECRET_KEYS to it")

// Keyring seals with its first key and opens with any of its keys. It is safe for concurrent use.
type Keyring struct {
	current string
	ciphers map[string]cipher.AEAD
}

// ParseKeyring parses comma-separated keys of the form `id:base64`. A key has 32 bytes; its ID contains neither `:` nor `,`. The
// first key seals. Errors never quote a key.
func ParseKeyring(text String) (*Keyring, error) {
	keyring := &Keyring{ciphers: map[string]cipher.AEAD{}}

	// Errors identify an entry by its position and not by its ID: if a user has swapped the ID and the key, the ID is the key.
	number := 0

	for entry := range strings.SplitSeq(text.Reveal(), ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}

		number++

		id, encoded, found := strings.Cut(entry, ":")
		if !found || id == "" {
			return nil, fmt.Errorf("database secret key number %d does not have the form id:base64", number)
		}

		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != keySize {
			return nil, fmt.Errorf("database secret key number %d must be %d bytes in base64", number, keySize)
		}

		if _, twice := keyring.ciphers[id]; twice {
			return nil, fmt.Errorf("database secret key %q is listed twice", id)
		}

		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("using database secret key %q: %w", id, err)
		}

		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("using database secret key %q: %w", id, err)
		}

		keyring.ciphers[id] = aead
		if keyring.current == "" {
			keyring.current = id
		}
	}

	if keyring.current == "" {
		return nil, ErrNoKeys
	}

	return keyring, nil
}

// NewKey returns a new random key with the ID, in the form that ParseKeyring parses.
func NewKey(id string) String {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails since Go 1.24

	return String(id + ":" + base64.StdEncoding.EncodeToString(key))
}

// Seal encrypts the plain text and returns the envelope in the form `id:base64`. The place identifies the row and column where
// the envelope will be stored. Sealing equal texts results in different envelopes.
func (k *Keyring) Seal(plain []byte, place string) string {
	sealed := k.ciphers[k.current].Seal(nil, nil, plain, []byte(place))

	return k.current + ":" + base64.StdEncoding.EncodeToString(sealed)
}

// Open decrypts an envelope that Seal returned for the same place. It returns an error if the keyring does not have the key, or
// if the envelope was changed or belongs to another place. Errors contain the place and the ID of the key, and no other part of
// the envelope.
func (k *Keyring) Open(envelope, place string) ([]byte, error) {
	id, encoded, found := strings.Cut(envelope, ":")
	if !found {
		return nil, fmt.Errorf("opening %s: not an envelope", place)
	}

	aead, known := k.ciphers[id]
	if !known {
		return nil, fmt.Errorf("opening %s: key %q is not configured", place, id)
	}

	sealed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("opening %s: not an envelope", place)
	}

	plain, err := aead.Open(nil, nil, sealed, []byte(place))
	if err != nil {
		return nil, fmt.Errorf("opening %s: the envelope was changed, moved, or sealed with a different key with the ID %q", place, id)
	}

	return plain, nil
}

// Prefix returns the common prefix of all envelopes that are sealed with the first key. Queries use it to find envelopes of other
// keys.
func (k *Keyring) Prefix() string { return k.current + ":" }

// Former returns the sorted IDs of all keys except the first. These keys can be removed once no stored envelope names them.
func (k *Keyring) Former() []string {
	ids := slices.Sorted(maps.Keys(k.ciphers))

	return slices.DeleteFunc(ids, func(id string) bool { return id == k.current })
}

// Reencrypt returns an envelope of the same text that is sealed with the first key. If the envelope is already sealed with the
// first key, it is returned unchanged.
func (k *Keyring) Reencrypt(envelope, place string) (string, error) {
	if strings.HasPrefix(envelope, k.Prefix()) {
		return envelope, nil
	}

	plain, err := k.Open(envelope, place)
	if err != nil {
		return "", err
	}

	return k.Seal(plain, place), nil
}

// KeyOf returns the ID of the key that sealed the envelope.
func KeyOf(envelope string) string {
	id, _, _ := strings.Cut(envelope, ":")

	return id
}
