package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// keySize is the length of an AES-256 key in bytes.
const keySize = 32

// ErrNoKeys tells that no key was configured. Its text is the way out.
var ErrNoKeys = errors.New("no database secret key: make one with " +
	"`echo \"k1:$(openssl rand -base64 32)\"` and set APP_DATABASE_SECRET_KEYS to it")

// Keyring seals with its first key and opens with any of them, so that keys can be exchanged while data exists.
type Keyring struct {
	current string
	ciphers map[string]cipher.AEAD
}

// ParseKeyring reads keys as `id:base64,…`. The first one seals. Each is 32 bytes long; an id holds neither `:` nor `,`.
func ParseKeyring(text String) (*Keyring, error) {
	keyring := &Keyring{ciphers: map[string]cipher.AEAD{}}

	// Errors tell the number of an entry and not its id: in an entry that is mixed up, that may be the key.
	number := 0

	for entry := range strings.SplitSeq(text.Reveal(), ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}

		number++

		id, encoded, found := strings.Cut(entry, ":")
		if !found || id == "" {
			return nil, fmt.Errorf("database secret key number %d is not written as id:base64", number)
		}

		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != keySize {
			return nil, fmt.Errorf("database secret key number %d is not an id and the base64 of %d bytes", number, keySize)
		}

		if _, twice := keyring.ciphers[id]; twice {
			return nil, fmt.Errorf("database secret key %q is given twice", id)
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

// NewKey returns a random key with the id, in the form that ParseKeyring reads.
func NewKey(id string) String {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails since Go 1.24

	return String(id + ":" + base64.StdEncoding.EncodeToString(key))
}

// Seal encrypts the plain text into an envelope that names its key. The envelope opens only in the same place: a value moved
// to another row or column is refused.
func (k *Keyring) Seal(plain []byte, place string) string {
	sealed := k.ciphers[k.current].Seal(nil, nil, plain, []byte(place))

	return k.current + ":" + base64.StdEncoding.EncodeToString(sealed)
}

// Open decrypts an envelope that Seal made for the place. It fails when the key is gone, or the envelope was changed or moved.
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
		return nil, fmt.Errorf("opening %s: the envelope was changed, moved, or sealed with another key of the id %q", place, id)
	}

	return plain, nil
}
