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
)

// access is how a binding's credentials lead to the cluster.
func (v visitor) access(binding reply) *rest.Config {
	v.Helper()

	kubeconfig, _ := binding.object("credentials")["kubeconfig"].(string)

	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	if err != nil {
		v.Fatalf("the credentials hold no kubeconfig: %v", err)
	}

	return config
}

// reaches has the cluster of a binding tell its version.
func (v visitor) reaches(reason string, binding reply) {
	v.Helper()

	version, err := discovery.NewDiscoveryClientForConfigOrDie(v.access(binding)).ServerVersion()
	if err != nil || !strings.HasPrefix(version.GitVersion, "v1.") {
		v.Errorf("%s: the cluster answers %v, %v", reason, version, err)
	}
}

// refusedSoon waits until the cluster refuses the binding: the token may be known to it a few seconds longer than it exists.
func (v visitor) refusedSoon(reason string, binding reply) {
	v.Helper()

	client := discovery.NewDiscoveryClientForConfigOrDie(v.access(binding))

	v.until("the cluster to refuse: "+reason, func() bool {
		_, err := client.ServerVersion()

		return apierrors.IsUnauthorized(err)
	})
}

// tokenEnd is when the token of a binding ends, as the token says itself.
func (v visitor) tokenEnd(binding reply) time.Time {
	v.Helper()

	parts := strings.Split(v.access(binding).BearerToken, ".")
	if len(parts) != 3 {
		v.Fatalf("the token of the binding is none that says when it ends")
	}

	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		v.Fatalf("the token of the binding cannot be read: %v", err)
	}

	var claims struct {
		Expiry int64 `json:"exp"`
	}

	if err := json.Unmarshal(content, &claims); err != nil || claims.Expiry == 0 {
		v.Fatalf("the token of the binding does not end: %s", content)
	}

	return time.Unix(claims.Expiry, 0)
}

// ownCluster are the parameters of a plan for clusters of the user's own.
func ownCluster(kubeconfig string) fields {
	return fields{
		"kubeconfig": base64.StdEncoding.EncodeToString([]byte(kubeconfig)), "shootName": "own", "shootDomain": "own.example.com",
	}
}

// failedAccess waits until the credentials of the binding lead nowhere, whatever the reason.
func (v visitor) failedAccess(binding reply) {
	v.Helper()

	client := discovery.NewDiscoveryClientForConfigOrDie(v.access(binding))

	v.until("the credentials to lead nowhere", func() bool {
		_, err := client.ServerVersion()

		return err != nil
	})
}
