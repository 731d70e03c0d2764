package service

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSelfSigned checks that a restart keeps the certificate unless it is for another host or cannot be read.
func TestSelfSigned(t *testing.T) {
	folder := t.TempDir()

	created := func(address string) string {
		t.Helper()

		certFile, keyFile, err := selfSigned(folder, address)
		if err != nil || certFile != filepath.Join(folder, certificateFile) || keyFile != filepath.Join(folder, "tls.key") {
			t.Fatal(certFile, keyFile, err)
		}

		content, err := os.ReadFile(certFile)
		if err != nil {
			t.Fatal(err)
		}

		return string(content)
	}

	first := created("https://bundles.example.com:8443")
	if created("https://bundles.example.com") != first {
		t.Error("a restart replaces the certificate")
	}

	byAddress := created("https://127.0.0.1:8443")
	if byAddress == first || created("https://127.0.0.1") != byAddress {
		t.Error("the certificate is not for the new host, or a restart replaces it")
	}

	if err := os.WriteFile(filepath.Join(folder, "tls.key"), []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}

	if created("https://127.0.0.1") == byAddress {
		t.Error("the certificate has no key, and is kept")
	}
}
