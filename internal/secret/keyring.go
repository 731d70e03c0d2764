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
	"sync/atomic"
)

// keySize is the length of an AES-256 key in bytes.
const keySize = 32

// ErrNoKeys reports that no key is configured. Its text explains how to create a key.
var ErrNoKeys = errors.New("no database secret key: create one with " +
	"`echo \"k1:$(openssl rand -base64 32)\"` and set APP_DATABASE_SECRET_KEYS to it")

// Keyring contains AES-256 keys. It seals with the first key and opens with any of them. It is safe for concurrent use.
type Keyring struct {
	current string
	ciphers map[string]cipher.AEAD
	// sealed is the number of values that Seal has sealed.
	sealed atomic.Int64
}

// ParseKeyring parses comma-separated keys of the form `id:base64`. A key has 32 bytes; its ID contains neither `:` nor `,`. The
// first key seals. Errors never quote a key.
func ParseKeyring(text String) (*Keyring, error) {
	keyring := &Keyring{ciphers: map[string]cipher.AEAD{}}

	// Until the key has been decoded, errors identify an entry by position: if a user swapped the ID and the key, an error that
	// quotes the ID would reveal the key.
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

// NewKey returns a new random key with the given ID, in the form that ParseKeyring parses.
func NewKey(id string) String {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails since Go 1.24

	return String(id + ":" + base64.StdEncoding.EncodeToString(key))
}

// Seal encrypts a value and returns the sealed value in the form `id:base64`. place identifies the row and column in which the
// caller stores the sealed value. Each call returns a different result, even for the same value.
func (k *Keyring) Seal(plain []byte, place string) string {
	k.sealed.Add(1)

	ciphertext := k.ciphers[k.current].Seal(nil, nil, plain, []byte(place))

	return k.current + ":" + base64.StdEncoding.EncodeToString(ciphertext)
}

// Open decrypts a value that Seal returned for the same place. It returns an error if the keyring does not have the key, or if
// the sealed value was changed or belongs to another place. Errors contain the place and the ID of the key, but no other part of
// the sealed value.
func (k *Keyring) Open(sealed, place string) ([]byte, error) {
	id, encoded, found := strings.Cut(sealed, ":")
	if !found {
		return nil, fmt.Errorf("decrypting the %s: not a sealed value", place)
	}

	aead, known := k.ciphers[id]
	if !known {
		return nil, fmt.Errorf("decrypting the %s: APP_DATABASE_SECRET_KEYS does not contain the key %q", place, id)
	}

	ciphertext, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("decrypting the %s: not a sealed value", place)
	}

	plain, err := aead.Open(nil, nil, ciphertext, []byte(place))
	if err != nil {
		return nil, fmt.Errorf("decrypting the %s: the sealed value was changed, moved, or sealed with a different key that has the ID %q", place, id)
	}

	return plain, nil
}

// Sealed returns the ID of the first key, and how many values Seal has sealed with it since ParseKeyring returned. Package
// sealcount adds up these numbers for all replicas.
func (k *Keyring) Sealed() (key string, values int64) { return k.current, k.sealed.Load() }

// Prefix returns the prefix of all values that are sealed with the first key. Queries use it to find the values without this
// prefix, which are sealed with other keys.
func (k *Keyring) Prefix() string { return k.current + ":" }

// Former returns the sorted IDs of all keys except the first. Operators can remove such a key once no stored value is sealed with
// it.
func (k *Keyring) Former() []string {
	ids := slices.Sorted(maps.Keys(k.ciphers))

	return slices.DeleteFunc(ids, func(id string) bool { return id == k.current })
}

// Reencrypt opens a sealed value and seals it with the first key. A value that is already sealed with the first key is returned
// unchanged.
func (k *Keyring) Reencrypt(sealed, place string) (string, error) {
	if strings.HasPrefix(sealed, k.Prefix()) {
		return sealed, nil
	}

	plain, err := k.Open(sealed, place)
	if err != nil {
		return "", err
	}

	return k.Seal(plain, place), nil
}

// KeyOf returns the ID of the key with which the value is sealed.
func KeyOf(sealed string) string {
	id, _, _ := strings.Cut(sealed, ":")

	return id
}
