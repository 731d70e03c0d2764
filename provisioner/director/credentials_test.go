package director_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/environment-broker/environment-broker/provisioner/director"
)

func TestCredentials(t *testing.T) {
	const good = "data: {client_id: me, client_secret: hush, tokens_endpoint: 'https://oauth.example.com/token'}"

	cases := map[string]struct{ reason, content, wantErr string }{
		"complete":    {"all fields are set", good, ""},
		"no secret":   {"the field is required", "data: {client_id: me, tokens_endpoint: 'https://oauth.example.com/token'}", "client_secret"},
		"no endpoint": {"the endpoint is required", "data: {client_id: me, client_secret: hush}", "tokens_endpoint"},
		"no YAML":     {"the error does not quote the file", "client_secret: hush: hush", "YAML"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "director.yaml")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}

			got, err := director.File(path).Read(t.Context())
			if (err == nil) != (c.wantErr == "") || err != nil && (!strings.Contains(err.Error(), c.wantErr) || strings.Contains(err.Error(), "hush")) {
				t.Errorf("%s: got %v", c.reason, err)
			}

			if err == nil && (got.ClientID != "me" || got.ClientSecret.Reveal() != "hush" || got.TokensEndpoint != "https://oauth.example.com/token") {
				t.Errorf("%s: got %+v", c.reason, got)
			}
		})
	}

	if _, err := director.File(filepath.Join(t.TempDir(), "none")).Read(t.Context()); err == nil {
		t.Error("a missing file is accepted")
	}
}

func TestCredentialsOfASecret(t *testing.T) {
	stored := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "compass-system", Name: "credentials"},
		Data: map[string][]byte{
			"client_id": []byte("me"), "client_secret": []byte("hush"), "tokens_endpoint": []byte("https://oauth.example.com/token"),
		},
	}
	api := fake.NewClientBuilder().WithObjects(stored).Build()

	got, err := director.Secret{API: api, Namespace: "compass-system", Name: "credentials"}.Read(t.Context())
	if err != nil || got.ClientID != "me" || got.ClientSecret.Reveal() != "hush" {
		t.Errorf("got %+v, %v", got, err)
	}

	if _, err := (director.Secret{API: api, Namespace: "compass-system", Name: "none"}).Read(t.Context()); err == nil {
		t.Error("a missing Secret is accepted")
	}

	delete(stored.Data, "client_id")

	if err := api.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}

	if _, err := (director.Secret{API: api, Namespace: "compass-system", Name: "credentials"}).Read(t.Context()); err == nil || !strings.Contains(err.Error(), "client_id") {
		t.Errorf("a Secret without a client ID: got %v", err)
	}
}
