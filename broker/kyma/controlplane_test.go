package kyma_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker/kyma"
)

// TestControlPlaneAddress checks which addresses a kubeconfig can have.
func TestControlPlaneAddress(t *testing.T) {
	const withoutTLS = "use an https address, because credentials are never sent without TLS"

	for name, test := range map[string]struct{ reason, server, user, want string }{
		"https":                    {"the usual form", "https://kcp.example.com", "{token: hush}", ""},
		"http":                     {"client-go drops the credentials", "http://kcp.example.com", "{token: hush}", withoutTLS},
		"http, certificate":        {"a client certificate needs TLS", "http://kcp.example.com", "{client-certificate-data: aHVzaA==, client-key-data: aHVzaA==}", withoutTLS},
		"http, password":           {"client-go drops it, too", "http://kcp.example.com", "{username: me, password: hush}", withoutTLS},
		"http, no credentials":     {"others could read and change Secrets", "http://kcp.example.com", "{}", withoutTLS},
		"no scheme":                {"client-go then uses http", "kcp.example.com:6443", "{token: hush}", withoutTLS},
		"loopback, credentials":    {"client-go drops the credentials", "http://127.0.0.1:8001", "{token: hush}", withoutTLS},
		"loopback":                 {"a simulator needs none", "http://127.0.0.1:8001", "{}", ""},
		"localhost":                {"a simulator needs none", "http://localhost:8001", "{}", ""},
		"IPv6 loopback":            {"a simulator needs none", "http://[::1]:8001", "{}", ""},
		"a name beginning with it": {"another machine", "http://127.0.0.1.example.com", "{}", withoutTLS},
		"another scheme":           {"nothing to call", "ftp://kcp.example.com", "{}", withoutTLS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "kubeconfig")
			content := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], "+
				"users: [{name: u, user: %s}], contexts: [{name: c, context: {cluster: c, user: u}}]}", test.server, test.user)

			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}

			err := (&kyma.ControlPlane{KubeconfigPath: path, Namespace: "kcp-system"}).Check()
			if (err != nil) != (test.want != "") {
				t.Fatalf("%s: got %v, want %q", test.reason, err, test.want)
			}

			if err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "hush")) {
				t.Errorf("%s: got %v, want %q", test.reason, err, test.want)
			}
		})
	}
}
