package shoot_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

func identityProvider() *spec.OIDC {
	return &spec.OIDC{
		ClientID: "client", IssuerURL: "https://issuer.example.com", UsernameClaim: "sub", UsernamePrefix: "-", GroupsClaim: "groups",
		SigningAlgs: []string{"RS256"},
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()

	type mapping = map[string]any

	cases := map[string]struct {
		reason string
		change func(order *spec.OIDC)
		want   mapping
	}{
		"NoPrefix": {
			reason: "A hyphen means no prefix, as in the flag of the API server.",
			change: func(*spec.OIDC) {},
			want:   mapping{"username": mapping{"claim": "sub", "prefix": ""}, "groups": mapping{"claim": "groups", "prefix": ""}},
		},
		"Prefix": {
			reason: "The prefix of the order is used.",
			change: func(order *spec.OIDC) { order.UsernamePrefix = "corp:" },
			want:   mapping{"username": mapping{"claim": "sub", "prefix": "corp:"}, "groups": mapping{"claim": "groups", "prefix": ""}},
		},
		"PrefixLeftOut": {
			reason: "Without a prefix the issuer is the prefix, so that its users cannot have the same names as other users.",
			change: func(order *spec.OIDC) { order.UsernamePrefix = "" },
			want: mapping{
				"username": mapping{"claim": "sub", "prefix": "https://issuer.example.com#"}, "groups": mapping{"claim": "groups", "prefix": ""},
			},
		},
		"Email": {
			reason: "E-mail addresses have no prefix by default.",
			change: func(order *spec.OIDC) { order.UsernamePrefix, order.UsernameClaim = "", "email" },
			want:   mapping{"username": mapping{"claim": "email", "prefix": ""}, "groups": mapping{"claim": "groups", "prefix": ""}},
		},
		"NoGroups": {
			reason: "Without a groups claim there are no groups.",
			change: func(order *spec.OIDC) { order.GroupsClaim = "" },
			want:   mapping{"username": mapping{"claim": "sub", "prefix": ""}},
		},
		"Nobody": {
			reason: "Clients may send back the empty object that responses contain for a missing identity provider.",
			change: func(order *spec.OIDC) { *order = spec.OIDC{SigningAlgs: []string{}} },
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			config := gcpOrder()
			config.OIDCConfig = identityProvider()
			tc.change(config.OIDCConfig)

			built, err := shoot.Build(runtimeOf(config), shoot.Options{Namespace: "garden-kyma"})
			if err != nil {
				t.Fatal(err)
			}

			if tc.want == nil {
				if built.Authentication != nil || built.Shoot.Spec.Kubernetes.KubeAPIServer != nil {
					t.Errorf("%s\ngot %v", tc.reason, built.Authentication)
				}

				return
			}

			if name := built.Shoot.Spec.Kubernetes.KubeAPIServer.StructuredAuthentication.ConfigMapName; name != built.Authentication.Name {
				t.Errorf("the Shoot refers to %q, the ConfigMap is %q", name, built.Authentication.Name)
			}

			var got struct {
				JWT []struct {
					ClaimMappings mapping `json:"claimMappings"`
				} `json:"jwt"`
			}
			if err := yaml.Unmarshal([]byte(built.Authentication.Data["config.yaml"]), &got); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, got.JWT[0].ClaimMappings); diff != "" {
				t.Errorf("%s\nclaims, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConfigurationChangesTheName verifies that a changed configuration does not overwrite the ConfigMap of an earlier
// generation.
func TestConfigurationChangesTheName(t *testing.T) {
	t.Parallel()

	name := func(issuer string) string {
		config := gcpOrder()
		config.OIDCConfig = identityProvider()
		config.OIDCConfig.IssuerURL = issuer

		built, err := shoot.Build(runtimeOf(config), shoot.Options{})
		if err != nil {
			t.Fatal(err)
		}

		return built.Authentication.Name
	}

	first, again, other := name("https://a.example.com"), name("https://a.example.com"), name("https://b.example.com")
	if first != again || first == other {
		t.Errorf("got name %s, again %s, with another issuer %s", first, again, other)
	}
}
