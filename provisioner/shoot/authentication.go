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
	// authenticationKey is the key under which Gardener looks for the configuration.
	authenticationKey = "config.yaml"

	// noPrefix is how an order says that user names get no prefix, as the flag of kube-apiserver has it.
	noPrefix   = "-"
	claimEmail = "email"

	// hashLength is how many letters of a hash tell one configuration of a cluster from another.
	hashLength = 10
)

// authenticationConfiguration is what kube-apiserver reads; k8s.io/apiserver has the type, and far more than is needed here.
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

// authenticationOf returns the ConfigMap from which the cluster's API server learns whose tokens to trust; nil when the order names no
// identity provider. Its name follows from its content: a change of the content is a change of the Shoot, so Gardener takes it up at
// once, and what an earlier generation refers to stays as it was.
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
		return nil, fmt.Errorf("encode the authentication configuration: %w", err)
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

// HasIdentityProvider reports whether an order names one. An object whose texts are all empty names none: that is how clients read
// that there is none.
func HasIdentityProvider(order *spec.OIDC) bool {
	return order != nil && order.ClientID+order.IssuerURL+order.UsernameClaim+order.UsernamePrefix+order.GroupsClaim != ""
}

// usernamePrefix keeps what the flags of kube-apiserver meant: without a prefix, names are told apart by their issuer, but for e-mail
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

func groupsOf(order *spec.OIDC) *prefixedClaim {
	if order.GroupsClaim == "" {
		return nil
	}

	return &prefixedClaim{Claim: order.GroupsClaim}
}
