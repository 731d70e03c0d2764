package director_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/director"
)

// FuzzCredentials parses arbitrary credential files. Accepted credentials are complete, and errors contain no value.
func FuzzCredentials(f *testing.F) {
	for _, seed := range []string{
		"", "data: {client_id: id, client_secret: secret, tokens_endpoint: https://example.com/token}", "data: {client_id: [1]}", "data: null",
		"data: {client_id: id, client_secret: s, tokens_endpoint: \"http://example.com\\r\\n\"}", "a: &x [*x]", "- a", "{", "data: {tokens_endpoint: \"::\"}",
		"data: {client_id: 1, client_secret: true, tokens_endpoint: 1e999}",
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, content []byte) {
		found, err := director.ParseCredentials(content)
		if err == nil && (found.ClientID == "" || found.ClientSecret == "" || !strings.HasPrefix(strings.ToLower(found.TokensEndpoint), "http")) {
			t.Errorf("%q is accepted as %q, %q", content, found.ClientID, found.TokensEndpoint)
		}

		const secret = "hunter2hunter2"

		_, err = director.ParseCredentials([]byte("data:\n  client_secret: " + secret + "\n  " + string(content)))
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error contains the secret: %v", err)
		}
	})
}
