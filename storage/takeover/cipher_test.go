package takeover_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/kymarows"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

func TestDecrypt(t *testing.T) {
	t.Parallel()

	cipher, err := takeover.NewCipher(kymarows.Key)
	if err != nil {
		t.Fatal(err)
	}

	for _, text := range []string{"admin@example.com", "", strings.Repeat("long ", 1000), "ünïcode"} {
		if plain, err := cipher.Decrypt(kymarows.Encrypt(t, text)); err != nil || plain.Reveal() != text {
			t.Errorf("got %v for %q", err, text)
		}
	}

	other, err := takeover.NewCipher("another key of thirty-two bytes.")
	if err != nil {
		t.Fatal(err)
	}

	if _, err := other.Decrypt(kymarows.Encrypt(t, "admin@example.com")); err == nil {
		t.Error("a wrong key must be detected")
	}

	for _, value := range []string{"", "plain text", "c2hvcnQ="} {
		if _, err := cipher.Decrypt(value); err == nil {
			t.Errorf("%q is not encrypted", value)
		}
	}
}

func TestKeysHaveTheLengthOfAES(t *testing.T) {
	t.Parallel()

	for key, valid := range map[secret.String]bool{"": false, "short": false, "sixteen bytes ok": true, kymarows.Key: true} {
		if _, err := takeover.NewCipher(key); (err == nil) != valid {
			t.Errorf("%d bytes: got %v", len(key.Reveal()), err)
		}
	}
}
