package secret_test

import (
	"slices"
	"testing"

	"github.com/environment-broker/environment-broker/internal/secret"
)

func TestReencrypt(t *testing.T) {
	old, next := secret.NewKey("k1"), secret.NewKey("k2")
	former, keys := ring(t, old), ring(t, next, old)

	anew, err := keys.Reencrypt(former.Seal([]byte(hush), place), place)
	if err != nil || secret.KeyOf(anew) != "k2" {
		t.Fatalf("sealed anew with %q, %v", secret.KeyOf(anew), err)
	}

	if plain, err := ring(t, next).Open(anew, place); err != nil || string(plain) != hush {
		t.Errorf("without the former key it opens as %q, %v", plain, err)
	}

	if again, err := keys.Reencrypt(anew, place); err != nil || again != anew {
		t.Errorf("what is sealed with the first key is sealed again: %v", err)
	}

	for reason, envelope := range map[string]string{
		"its key is gone":       ring(t, secret.NewKey("k0")).Seal([]byte(hush), place),
		"it is of another row":  former.Seal([]byte(hush), "elsewhere"),
		"it is not an envelope": "rubbish",
	} {
		if got, err := keys.Reencrypt(envelope, place); err == nil || got != "" {
			t.Errorf("%s, but it is sealed anew", reason)
		}
	}

	if got := keys.Former(); !slices.Equal(got, []string{"k1"}) || len(former.Former()) != 0 {
		t.Errorf("former keys: %v of two, %v of one", got, former.Former())
	}
}
