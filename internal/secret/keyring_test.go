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

func TestSealedTextIsReadBack(t *testing.T) {
	keys := ring(t, secret.NewKey("k1"))

	for name, plain := range map[string]string{"text": "a kubeconfig", "nothing": "", "binary": "\x00\xff", "long": strings.Repeat("x", 1<<20)} {
		t.Run(name, func(t *testing.T) {
			envelope := keys.Seal([]byte(plain), place)
			if !strings.HasPrefix(envelope, "k1:") || (plain != "" && strings.Contains(envelope, plain)) {
				t.Errorf("the envelope does not name its key, or shows the text: %.80s", envelope)
			}

			if again := keys.Seal([]byte(plain), place); again == envelope {
				t.Error("the same text gives the same envelope: who reads the table learns which rows are equal")
			}

			opened, err := keys.Open(envelope, place)
			if err != nil || string(opened) != plain {
				t.Errorf("opened %.80q, %v", opened, err)
			}
		})
	}
}

func TestKeysAreExchangedWhileDataExists(t *testing.T) {
	old, next := secret.NewKey("k1"), secret.NewKey("k2")
	sealedBefore := ring(t, old).Seal([]byte(hush), place)

	both := ring(t, next, old)
	if opened, err := both.Open(sealedBefore, place); err != nil || string(opened) != hush {
		t.Errorf("what the old key sealed gives %q, %v", opened, err)
	}

	sealedAfter := both.Seal([]byte(hush), place)
	if !strings.HasPrefix(sealedAfter, "k2:") {
		t.Errorf("the first key does not seal: %.10s", sealedAfter)
	}

	onlyNext := ring(t, next)
	if opened, err := onlyNext.Open(sealedAfter, place); err != nil || string(opened) != hush {
		t.Errorf("without the old key, what the new one sealed gives %q, %v", opened, err)
	}

	if _, err := onlyNext.Open(sealedBefore, place); err == nil || !strings.Contains(err.Error(), `key "k1" is not configured`) {
		t.Errorf("without the old key, what it sealed gives %v, want an error that names the key", err)
	}
}

func TestEnvelopesAreRefused(t *testing.T) {
	keys := ring(t, secret.NewKey("k1"))
	envelope := keys.Seal([]byte("hush, hush"), place)
	encoded := strings.TrimPrefix(envelope, "k1:")

	changed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}

	changed[len(changed)/2] ^= 1

	cases := map[string]struct {
		reason   string
		keys     *secret.Keyring
		envelope string
		place    string
		want     string
	}{
		"moved":        {"a value copied to another row would give its secret to another tenant", keys, envelope, "payload of operation 2", "moved"},
		"changed":      {"who can write to the table must not make up values", keys, "k1:" + base64.StdEncoding.EncodeToString(changed), place, "changed"},
		"cut":          {"a value that was cut off is no value", keys, envelope[:len(envelope)/2], place, "opening"},
		"empty":        {"an envelope of nothing has at least a nonce", keys, "k1:", place, "changed"},
		"other key":    {"a key with the same id may be another one", ring(t, secret.NewKey("k1")), envelope, place, "another key"},
		"unknown key":  {"the operator has to know which key is missing", keys, "k9:" + encoded, place, `"k9"`},
		"no envelope":  {"what was stored in clear is not taken for sealed", keys, "hush, hush", place, "not an envelope"},
		"no base64":    {"what was stored in clear is not taken for sealed", keys, "k1:hush, hush", place, "not an envelope"},
		"clear as key": {"what was stored in clear is not taken for sealed", keys, "", place, "not an envelope"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			opened, err := c.keys.Open(c.envelope, c.place)
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
		"no id":        {"the envelope names its key", material, "number 1 does not have the form id:base64"},
		"empty id":     {"the envelope names its key", ":" + material, "number 1 does not have the form id:base64"},
		"second no id": {"the error shows the position", good + "," + material, "number 2 does not have the form"},
		"no base64":    {"a key is base64", "k1:" + material[1:], "number 1 is not the base64 of 32 bytes"},
		"short":        {"AES-256 needs 32 bytes", "k1:" + material[:40], "base64 of 32 bytes"},
		"mixed up":     {"the text before the colon may be the key", material + ":k1", "base64 of 32 bytes"},
		"twice":        {"ids are unique", "k1:" + material + ",k1:" + material, `"k1" is listed twice`},
		"nothing":      {"data is never stored in clear", "", "openssl rand -base64 32"},
		"only commas":  {"data is never stored in clear", " , ,", "APP_DATABASE_SECRET_KEYS"},
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
		t.Errorf("no keys give %v, want ErrNoKeys", err)
	}

	if _, err := secret.ParseKeyring(secret.String(" " + good + " ,\n")); err != nil {
		t.Errorf("white space and a comma at the end, as files have them, give %v", err)
	}
}

func FuzzOpenRefusesWhatWasNotSealed(f *testing.F) {
	keys, err := secret.ParseKeyring(secret.NewKey("k1"))
	if err != nil {
		f.Fatal(err)
	}

	for _, envelope := range []string{"", ":", "k1:", "k1:AAAA", "k2:AAAA", "k1:" + strings.Repeat("A", 64), keys.Seal(nil, "elsewhere")} {
		f.Add(envelope)
	}

	f.Fuzz(func(t *testing.T, envelope string) {
		if opened, err := keys.Open(envelope, place); err == nil {
			t.Errorf("%q opens as %q", envelope, opened)
		}
	})
}
