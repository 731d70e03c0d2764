package secret_test

import (
	"slices"
	"testing"

	"github.com/environment-broker/environment-broker/internal/secret"
)

func TestReencrypt(t *testing.T) {
	old, next := secret.NewKey("k1"), secret.NewKey("k2")
	former, keys := ring(t, old), ring(t, next, old)

	sealed, err := keys.Reencrypt(former.Seal([]byte(hush), place), place)
	if err != nil || secret.KeyOf(sealed) != "k2" {
		t.Fatalf("sealed with %q, %v", secret.KeyOf(sealed), err)
	}

	if plain, err := ring(t, next).Open(sealed, place); err != nil || string(plain) != hush {
		t.Errorf("without the old key, the re-encrypted value opens as %q, %v", plain, err)
	}

	if again, err := keys.Reencrypt(sealed, place); err != nil || again != sealed {
		t.Errorf("a value sealed with the first key is changed: %v", err)
	}

	for reason, value := range map[string]string{
		"its key is missing":       ring(t, secret.NewKey("k0")).Seal([]byte(hush), place),
		"it is from another row":   former.Seal([]byte(hush), "elsewhere"),
		"it is not a sealed value": "rubbish",
	} {
		if got, err := keys.Reencrypt(value, place); err == nil || got != "" {
			t.Errorf("a value is re-encrypted although %s", reason)
		}
	}

	if got := keys.Former(); !slices.Equal(got, []string{"k1"}) || len(former.Former()) != 0 {
		t.Errorf("former keys: got %v for a keyring with two keys and %v for a keyring with one", got, former.Former())
	}
}
