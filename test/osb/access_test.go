package osb

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/test/harness"
)

func kubeconfig(binding harness.Reply) []byte {
	text, _ := binding.Object("credentials")["kubeconfig"].(string)

	return []byte(text)
}

func (p platform) clusterConfig(binding harness.Reply) *rest.Config {
	p.Helper()

	return harness.RuntimeConfig(p, kubeconfig(binding))
}

// wantAccess checks that the cluster accepts the credentials of a binding.
func (p platform) wantAccess(reason string, binding harness.Reply) {
	p.Helper()
	harness.WantRuntimeResponds(p, reason, kubeconfig(binding))
}

// waitForRejectedToken waits until the cluster rejects the token of a binding. An API server caches valid tokens for a few
// seconds.
func (p platform) waitForRejectedToken(reason string, binding harness.Reply) {
	p.Helper()

	client := discovery.NewDiscoveryClientForConfigOrDie(p.clusterConfig(binding))

	p.until("the cluster to reject the token: "+reason, func() bool {
		_, err := client.ServerVersion()

		return apierrors.IsUnauthorized(err)
	})
}

// tokenExpiry returns the expiry time in the token of a binding.
func (p platform) tokenExpiry(binding harness.Reply) time.Time {
	p.Helper()

	parts := strings.Split(p.clusterConfig(binding).BearerToken, ".")
	if len(parts) != 3 {
		p.Fatalf("the binding's token is not a JWT")
	}

	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		p.Fatalf("decoding the binding's token: %v", err)
	}

	var claims struct {
		Expiry int64 `json:"exp"`
	}

	if err := json.Unmarshal(content, &claims); err != nil || claims.Expiry == 0 {
		p.Fatalf("the binding's token has no expiry: %s", content)
	}

	return time.Unix(claims.Expiry, 0)
}

// ownCluster returns the parameters of an order that uses an existing cluster (plan own_cluster).
func ownCluster(kubeconfig string) fields {
	return fields{
		"kubeconfig": base64.StdEncoding.EncodeToString([]byte(kubeconfig)), "shootName": "own", "shootDomain": "own.example.com",
	}
}

// waitForAccessFailure waits until calls with the credentials of a binding fail, because the cluster rejects the token or no
// longer exists.
func (p platform) waitForAccessFailure(binding harness.Reply) {
	p.Helper()

	client := discovery.NewDiscoveryClientForConfigOrDie(p.clusterConfig(binding))

	p.until("the credentials to fail", func() bool {
		_, err := client.ServerVersion()

		return err != nil
	})
}
