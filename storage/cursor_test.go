package storage_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

func TestCursor(t *testing.T) {
	t.Parallel()

	at := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)

	for _, want := range []storage.Cursor{
		{At: at, ID: "an ID with spaces"}, {Sort: "oldest", At: at, ID: "{an ID"}, {Sort: "-name", Key: `a "name"`, ID: "id"},
	} {
		if got, valid := storage.ParseCursor(want.String()); !valid || got != want {
			t.Errorf("got %+v, %t, want %+v", got, valid, want)
		}
	}

	for reason, text := range map[string]string{
		"no base64":             "?",
		"no time":               base64.RawURLEncoding.EncodeToString([]byte("then id")),
		"PostgreSQL has no NUL": base64.RawURLEncoding.EncodeToString([]byte("2030-01-02T03:04:05Z a\x00b")),
		"no JSON":               base64.RawURLEncoding.EncodeToString([]byte(`{"sort":`)),
		"no order":              base64.RawURLEncoding.EncodeToString([]byte(`{"key":"a","at":"2030-01-02T03:04:05Z","id":"a"}`)),
		"no NUL in a key":       base64.RawURLEncoding.EncodeToString([]byte(`{"sort":"name","key":"\u0000","at":"2030-01-02T03:04:05Z","id":"a"}`)),
		"no year 0":             base64.RawURLEncoding.EncodeToString([]byte("0000-01-02T03:04:05Z a")),
		"no UTF-8":              base64.RawURLEncoding.EncodeToString([]byte("2030-01-02T03:04:05Z \xff")),
	} {
		if _, valid := storage.ParseCursor(text); valid {
			t.Errorf("%s: the cursor is valid", reason)
		}
	}
}
