package secret_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/secret"
)

const place = "payload of operation 1"

func ring(t *testing.T, keys ...secret.String) *secret.Keyring {
	t.Helper()

	texts := make([]string, 0, len(keys))
	for _, key := range keys {
		texts = append(texts, key.Reveal())
	}

	parsed, err := secret.ParseKeyring(secret.String(strings.Join(texts, ",")))
	if err != nil {
		t.Fatal(err)
	}

	return parsed
}

func TestSealAndOpen(t *testing.T) {
	keys := ring(t, secret.NewKey("k1"))

	for name, plain := range map[string]string{"text": "a kubeconfig", "empty": "", "binary": "\x00\xff", "long": strings.Repeat("x", 1<<20)} {
		t.Run(name, func(t *testing.T) {
			sealed := keys.Seal([]byte(plain), place)
			if !strings.HasPrefix(sealed, "k1:") || (plain != "" && strings.Contains(sealed, plain)) {
				t.Errorf("the sealed value does not name its key, or contains the plain text: %.80s", sealed)
			}

			if again := keys.Seal([]byte(plain), place); again == sealed {
				t.Error("equal texts have equal sealed values, which reveals equal rows to a reader of the table")
			}

			opened, err := keys.Open(sealed, place)
			if err != nil || string(opened) != plain {
				t.Errorf("opened %.80q, %v", opened, err)
			}
		})
	}
}

func TestKeyRotation(t *testing.T) {
	old, next := secret.NewKey("k1"), secret.NewKey("k2")
	sealedBefore := ring(t, old).Seal([]byte(hush), place)

	both := ring(t, next, old)
	if opened, err := both.Open(sealedBefore, place); err != nil || string(opened) != hush {
		t.Errorf("a value sealed with the old key opens as %q, %v", opened, err)
	}

	sealedAfter := both.Seal([]byte(hush), place)
	if !strings.HasPrefix(sealedAfter, "k2:") {
		t.Errorf("the value is not sealed with the first key: %.10s", sealedAfter)
	}

	onlyNext := ring(t, next)
	if opened, err := onlyNext.Open(sealedAfter, place); err != nil || string(opened) != hush {
		t.Errorf("without the old key, a value sealed with the new key opens as %q, %v", opened, err)
	}

	if _, err := onlyNext.Open(sealedBefore, place); err == nil || !strings.Contains(err.Error(), `does not contain the key "k1"`) {
		t.Errorf("without the old key, opening a value that it sealed returns %v, want an error that names the key", err)
	}
}

func TestOpenRejectsInvalidValues(t *testing.T) {
	keys := ring(t, secret.NewKey("k1"))
	sealed := keys.Seal([]byte("hush, hush"), place)
	encoded := strings.TrimPrefix(sealed, "k1:")

	changed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}

	changed[len(changed)/2] ^= 1

	cases := map[string]struct {
		reason string
		keys   *secret.Keyring
		sealed string
		place  string
		want   string
	}{
		"moved":       {"a value copied to another row would reveal its secret to another tenant", keys, sealed, "payload of operation 2", "moved"},
		"changed":     {"a writer to the table must not be able to forge values", keys, "k1:" + base64.StdEncoding.EncodeToString(changed), place, "changed"},
		"cut":         {"a truncated value is invalid", keys, sealed[:len(sealed)/2], place, "decrypting"},
		"empty":       {"even a sealed empty text has a nonce", keys, "k1:", place, "changed"},
		"other key":   {"different keys may have the same ID", ring(t, secret.NewKey("k1")), sealed, place, "a different key"},
		"unknown key": {"the error names the missing key", keys, "k9:" + encoded, place, `"k9"`},
		"not sealed":  {"plain text is not a sealed value", keys, "hush, hush", place, "not a sealed value"},
		"no base64":   {"plain text is not a sealed value", keys, "k1:hush, hush", place, "not a sealed value"},
		"nothing":     {"an empty text is not a sealed value", keys, "", place, "not a sealed value"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			opened, err := c.keys.Open(c.sealed, c.place)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.place) {
				t.Errorf("%s: got %q, %v, want an error with the place and %q", c.reason, opened, err, c.want)
			}

			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: the error quotes the value: %v", c.reason, err)
			}
		})
	}
}

func TestInvalidKeysAreNotQuoted(t *testing.T) {
	material := strings.TrimPrefix(secret.NewKey("k1").Reveal(), "k1:")
	good := "k0:" + strings.TrimPrefix(secret.NewKey("k0").Reveal(), "k0:")

	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"no id":        {"a sealed value names its key", material, "number 1 does not have the form id:base64"},
		"empty id":     {"a sealed value names its key", ":" + material, "number 1 does not have the form id:base64"},
		"second no id": {"the error shows the position", good + "," + material, "number 2 does not have the form"},
		"no base64":    {"a key is base64", "k1:" + material[1:], "number 1 must be 32 bytes in base64"},
		"short":        {"an AES-256 key has 32 bytes", "k1:" + material[:40], "32 bytes in base64"},
		"swapped":      {"the text before the colon may be the key, so it is not quoted", material + ":k1", "32 bytes in base64"},
		"twice":        {"IDs must be unique", "k1:" + material + ",k1:" + material, `"k1" is listed twice`},
		"nothing":      {"data is never stored in clear text", "", "openssl rand -base64 32"},
		"only commas":  {"data is never stored in clear text", " , ,", "APP_DATABASE_SECRET_KEYS"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := secret.ParseKeyring(secret.String(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%s: got %v, want an error with %q", c.reason, err, c.want)
			}

			if strings.Contains(err.Error(), material[1:8]) {
				t.Errorf("%s: the error quotes the key: %v", c.reason, err)
			}
		})
	}

	if _, err := secret.ParseKeyring(""); !errors.Is(err, secret.ErrNoKeys) {
		t.Errorf("without keys, got %v, want ErrNoKeys", err)
	}

	if _, err := secret.ParseKeyring(secret.String(" " + good + " ,\n")); err != nil {
		t.Errorf("white space and a trailing comma, as in files, are rejected: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	keys, err := secret.ParseKeyring(secret.NewKey("k1"))
	if err != nil {
		f.Fatal(err)
	}

	for _, sealed := range []string{"", ":", "k1:", "k1:AAAA", "k2:AAAA", "k1:" + strings.Repeat("A", 64), keys.Seal(nil, "elsewhere")} {
		f.Add(sealed)
	}

	f.Fuzz(func(t *testing.T, sealed string) {
		if opened, err := keys.Open(sealed, place); err == nil {
			t.Errorf("%q opens as %q", sealed, opened)
		}
	})
}
