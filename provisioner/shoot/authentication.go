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
	// authenticationKey is the key of the configuration in the ConfigMap, set by Gardener.
	authenticationKey = "config.yaml"

	// noPrefix in an order stands for user names without a prefix, as in the flags of kube-apiserver.
	noPrefix   = "-"
	claimEmail = "email"

	// hashLength is the number of hexadecimal digits that distinguish the configurations of a cluster.
	hashLength = 10
)

// authenticationConfiguration is the file that kube-apiserver reads. The package of kube-apiserver that defines it has many
// dependencies.
type authenticationConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	JWT []jwtAuthenticator `json:"jwt"`
}

type jwtAuthenticator struct {
	Issuer        jwtIssuer     `json:"issuer"`
	ClaimMappings claimMappings `json:"claimMappings"`
}

type jwtIssuer struct {
	URL       string   `json:"url"`
	Audiences []string `json:"audiences"`
}

type claimMappings struct {
	Username prefixedClaim  `json:"username"`
	Groups   *prefixedClaim `json:"groups,omitempty"`
}

type prefixedClaim struct {
	Claim  string `json:"claim"`
	Prefix string `json:"prefix"`
}

// authenticationOf returns the ConfigMap with the trusted identity provider, or nil if the order has none. A hash of the content
// is part of the name: so a new content changes the Shoot, Gardener reconciles at once, and earlier generations keep the content
// they refer to.
func authenticationOf(runtime Runtime, options Options) (*corev1.ConfigMap, error) {
	order := runtime.Config.OIDCConfig
	if !HasIdentityProvider(order) {
		return nil, nil
	}

	text, err := yaml.Marshal(authenticationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiserver.config.k8s.io/v1beta1", Kind: "AuthenticationConfiguration"},
		JWT: []jwtAuthenticator{{
			Issuer: jwtIssuer{URL: order.IssuerURL, Audiences: []string{order.ClientID}},
			ClaimMappings: claimMappings{
				Username: prefixedClaim{Claim: order.UsernameClaim, Prefix: usernamePrefix(order)},
				Groups:   groupsOf(order),
			},
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

// HasIdentityProvider reports whether the order has one. Clients read a missing one as an object with empty texts, and may send
// that back.
func HasIdentityProvider(order *spec.OIDC) bool {
	return order != nil && order.ClientID+order.IssuerURL+order.UsernameClaim+order.UsernamePrefix+order.GroupsClaim != ""
}

// usernamePrefix follows the flags of kube-apiserver: without a prefix in the order it is the issuer, except for e-mail
// addresses.
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

// groupsOf returns the claim for groups, or nil. Groups have no prefix.
func groupsOf(order *spec.OIDC) *prefixedClaim {
	if order.GroupsClaim == "" {
		return nil
	}

	return &prefixedClaim{Claim: order.GroupsClaim}
}
