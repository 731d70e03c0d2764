package clusterclient_test

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/secret"
)

func TestValidity(t *testing.T) {
	t.Parallel()

	authority, err := certificate.OpenAuthority(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}

	issued, err := authority.IssueClient(certificate.Client{CommonName: "admin", Validity: time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	valid := fmt.Sprintf("{current-context: c, contexts: [{name: c, context: {user: u}}], users: [{name: u, user: {client-certificate-data: %s}}]}",
		base64.StdEncoding.EncodeToString(issued.Certificate))
	if from, until := clusterclient.Validity(secret.String(valid)); time.Until(until) > time.Hour || time.Until(until) < 50*time.Minute || !from.Before(until) {
		t.Errorf("got %s to %s", from, until)
	}

	for _, text := range []string{
		"", "{", "{current-context: c}", "{current-context: c, contexts: [{name: c, context: {user: u}}]}",
		"{current-context: c, contexts: [{name: c, context: {user: u}}], users: [{name: u, user: {token: t}}]}",
		"{current-context: c, contexts: [{name: c, context: {user: u}}], users: [{name: u, user: {client-certificate-data: YQ==}}]}",
	} {
		if from, until := clusterclient.Validity(secret.String(text)); !from.IsZero() || !until.IsZero() {
			t.Errorf("%q: got %s, %s", text, from, until)
		}
	}
}

// FuzzValidity checks that Validity returns either both times or neither, for any text.
func FuzzValidity(f *testing.F) {
	f.Add("{current-context: c, contexts: [{name: c, context: {user: u}}], users: [{name: u, user: {client-certificate-data: YQ==}}]}")
	f.Add("- 1")

	f.Fuzz(func(t *testing.T, text string) {
		if from, until := clusterclient.Validity(secret.String(text)); from.IsZero() != until.IsZero() {
			t.Errorf("got %s and %s", from, until)
		}
	})
}
