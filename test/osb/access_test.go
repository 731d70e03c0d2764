package osb

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/test/harness"
)

// access returns the client configuration in a binding's credentials.
func (p platform) access(binding harness.Reply) *rest.Config {
	p.Helper()

	kubeconfig, _ := binding.Object("credentials")["kubeconfig"].(string)

	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	if err != nil {
		p.Fatalf("the credentials hold no kubeconfig: %v", err)
	}

	return config
}

// reaches checks that the credentials of a binding work.
func (p platform) reaches(reason string, binding harness.Reply) {
	p.Helper()

	version, err := discovery.NewDiscoveryClientForConfigOrDie(p.access(binding)).ServerVersion()
	if err != nil || !strings.HasPrefix(version.GitVersion, "v1.") {
		p.Errorf("%s: the cluster answers %v, %v", reason, version, err)
	}
}

// refusedSoon waits until the cluster refuses the binding's token, which it may cache for a few seconds.
func (p platform) refusedSoon(reason string, binding harness.Reply) {
	p.Helper()

	client := discovery.NewDiscoveryClientForConfigOrDie(p.access(binding))

	p.until("the cluster to refuse: "+reason, func() bool {
		_, err := client.ServerVersion()

		return apierrors.IsUnauthorized(err)
	})
}

// tokenEnd is the expiry in the token of a binding.
func (p platform) tokenEnd(binding harness.Reply) time.Time {
	p.Helper()

	parts := strings.Split(p.access(binding).BearerToken, ".")
	if len(parts) != 3 {
		p.Fatalf("the token of the binding is none that says when it ends")
	}

	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		p.Fatalf("the token of the binding cannot be read: %v", err)
	}

	var claims struct {
		Expiry int64 `json:"exp"`
	}

	if err := json.Unmarshal(content, &claims); err != nil || claims.Expiry == 0 {
		p.Fatalf("the token of the binding does not end: %s", content)
	}

	return time.Unix(claims.Expiry, 0)
}

// ownCluster are the parameters of an instance with its own cluster.
func ownCluster(kubeconfig string) fields {
	return fields{
		"kubeconfig": base64.StdEncoding.EncodeToString([]byte(kubeconfig)), "shootName": "own", "shootDomain": "own.example.com",
	}
}

// failedAccess waits until the credentials of the binding fail for any reason.
func (p platform) failedAccess(binding harness.Reply) {
	p.Helper()

	client := discovery.NewDiscoveryClientForConfigOrDie(p.access(binding))

	p.until("the credentials to fail", func() bool {
		_, err := client.ServerVersion()

		return err != nil
	})
}
