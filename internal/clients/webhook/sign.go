package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// secretPrefix precedes the base64-encoded key in a secret. secretBytes is the length of the key in new secrets; the
	// specification allows 24 to 64 bytes.
	secretPrefix = "whsec_"
	secretBytes  = 32
)

// errSecret is the error for a malformed secret. It must not quote the secret.
var errSecret = errors.New("the webhook secret does not have the form whsec_BASE64")

// NewSecret returns a random secret in the form whsec_BASE64.
func NewSecret() secret.String {
	var key [secretBytes]byte

	_, _ = rand.Read(key[:]) // never fails

	return secret.String(secretPrefix + base64.StdEncoding.EncodeToString(key[:]))
}

// sign returns a message's signature, in the form v1,BASE64.
func sign(with secret.String, id string, at time.Time, body []byte) (string, error) {
	encoded, is := strings.CutPrefix(with.Reveal(), secretPrefix)

	key, err := base64.StdEncoding.DecodeString(encoded)
	if !is || err != nil {
		return "", errSecret
	}

	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)

	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}
