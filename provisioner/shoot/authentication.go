package shoot

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const (
	// authenticationKey is the ConfigMap key that Gardener reads.
	authenticationKey = "config.yaml"

	// noPrefix is the usernamePrefix that requests user names without a prefix, as in the flags of kube-apiserver.
	noPrefix = "-"
	// claimEmail is the claim whose values have no prefix by default.
	claimEmail = "email"

	// hashLength is the number of hexadecimal digits in the ConfigMap's name. The hash only has to distinguish the configurations
	// of one cluster.
	hashLength = 10
)

// authenticationOf returns the ConfigMap with the trusted identity provider, or nil if the order has none. The name of the
// ConfigMap contains a hash of the content. New content therefore changes the Shoot, and Gardener reconciles it immediately. A
// reconciliation in progress still uses the ConfigMap that its generation refers to. Client.Tidy of package gardener deletes
// ConfigMaps that are no longer referenced.
func authenticationOf(runtime Runtime, options Options) (*corev1.ConfigMap, error) {
	order := runtime.Config.OIDCConfig
	if !HasIdentityProvider(order) {
		return nil, nil
	}

	mappings := fields{"username": fields{"claim": order.UsernameClaim, "prefix": usernamePrefix(order)}}
	if order.GroupsClaim != "" {
		mappings["groups"] = fields{"claim": order.GroupsClaim, "prefix": ""}
	}

	// The configuration is built as a map, because its Go type is in a module of Kubernetes that has many dependencies.
	text, err := yaml.Marshal(fields{
		"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration",
		"jwt": []fields{{
			"issuer":        fields{"url": order.IssuerURL, "audiences": []string{order.ClientID}},
			"claimMappings": mappings,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the authentication configuration: %w", err)
	}

	hash := sha256.Sum256(text)

	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: options.Namespace,
			Name:      runtime.Config.Name + ".oidc-" + hex.EncodeToString(hash[:])[:hashLength],
			Labels:    map[string]string{LabelRuntimeID: runtime.ID},
		},
		Data: map[string]string{authenticationKey: string(text)},
	}, nil
}

// HasIdentityProvider reports whether the order has an identity provider. It returns false for an object with empty fields,
// because the API returns such an object to clients, which may send it back.
func HasIdentityProvider(order *spec.OIDC) bool {
	return order != nil && order.ClientID+order.IssuerURL+order.UsernameClaim+order.UsernamePrefix+order.GroupsClaim != ""
}

// usernamePrefix returns the prefix of user names. As with kube-apiserver's flags, email addresses have no prefix by default, and
// the default prefix for all other claims is the issuer.
func usernamePrefix(order *spec.OIDC) string {
	switch {
	case order.UsernamePrefix == noPrefix:
		return ""
	case order.UsernamePrefix == "" && order.UsernameClaim != claimEmail:
		return order.IssuerURL + "#"
	default:
		return order.UsernamePrefix
	}
}
