package takeover

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// errKey reports that a value was not encrypted with the key. Its text does not contain the value.
var errKey = errors.New("the key does not decrypt the value")

// Cipher decrypts values that Kyma Provisioner or KEB has encrypted. Both encrypted the base64 form of a string with AES in CFB
// mode, prepended the IV, and stored the result in base64.
type Cipher struct {
	block cipher.Block
}

// NewCipher returns a cipher for the key of Kyma Provisioner or KEB. The bytes of the key are the AES key, so it must have 16,
// 24 or 32 bytes. The error does not contain the key.
func NewCipher(key secret.String) (*Cipher, error) {
	block, err := aes.NewCipher([]byte(key.Reveal()))
	if err != nil {
		return nil, fmt.Errorf("the key has %d bytes: it must have 16, 24 or 32", len(key.Reveal()))
	}

	return &Cipher{block: block}, nil
}

// Decrypt decrypts a value. CFB does not authenticate values, but with a wrong key, the decrypted bytes are almost never valid
// base64. Decrypt returns an error in this case.
func (c *Cipher) Decrypt(value string) (secret.String, error) {
	sealed, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(sealed) < aes.BlockSize {
		return "", errors.New("the value is not encrypted")
	}

	encoded := make([]byte, len(sealed)-aes.BlockSize)

	//nolint:staticcheck // Kyma Provisioner and KEB use this mode
	cipher.NewCFBDecrypter(c.block, sealed[:aes.BlockSize]).XORKeyStream(encoded, sealed[aes.BlockSize:])

	text, err := base64.StdEncoding.Strict().DecodeString(string(encoded))
	if err != nil {
		return "", errKey
	}

	return secret.String(text), nil
}
