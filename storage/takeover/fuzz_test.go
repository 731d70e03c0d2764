package takeover_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/kymarows"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// FuzzDecrypt decrypts arbitrary values of the rows of Kyma Provisioner and KEB. No text is longer than its value, and no error
// contains the value.
func FuzzDecrypt(f *testing.F) {
	cipher, err := takeover.NewCipher(kymarows.Key)
	if err != nil {
		f.Fatal(err)
	}

	for _, value := range []string{"", "plain text", "c2hvcnQ=", strings.Repeat("A", 24), strings.Repeat("QUFB", 20)} {
		f.Add(value)
	}

	f.Fuzz(func(t *testing.T, value string) {
		text, err := cipher.Decrypt(value)
		if len(text.Reveal()) > len(value) {
			t.Errorf("%q has a text of %d bytes", value, len(text.Reveal()))
		}

		if err != nil && len(value) > 12 && strings.Contains(err.Error(), value) {
			t.Errorf("the error contains the value: %v", err)
		}
	})
}
