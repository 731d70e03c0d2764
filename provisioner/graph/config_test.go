package graph_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// TestClusterConfig checks that the API returns the cluster configuration of an order. Orders and responses use the same field
// names.
func TestClusterConfig(t *testing.T) {
	t.Parallel()

	const query = `{ runtimeStatus(id: "rt") { runtimeConfiguration { clusterConfig {
		name kubernetesVersion provider targetSecret region machineType machineImage machineImageVersion diskType volumeSizeGB workerCidr
		podsCidr servicesCidr autoScalerMin autoScalerMax maxSurge maxUnavailable purpose licenceType enableKubernetesVersionAutoUpdate
		enableMachineImageVersionAutoUpdate seed dnsConfig { domain providers { domainsInclude primary secretName type } }
		oidcConfig { clientID groupsClaim issuerURL signingAlgs usernameClaim usernamePrefix }
		exposureClassName shootNetworkingFilterDisabled controlPlaneFailureTolerance euAccess
		additionalWorkers { name machineType machineImage machineImageVersion diskType volumeSizeGB autoScalerMin autoScalerMax maxSurge
			maxUnavailable zones }
		providerSpecificConfig {
			... on AWSProviderConfig { vpcCidr enableIMDSv2 awsZones { name publicCidr internalCidr workerCidr } }
			... on AzureProviderConfig { vnetCidr zones azureZones { name cidr } enableNatGateway idleConnectionTimeoutMinutes }
			... on GCPProviderConfig { zones }
			... on OpenStackProviderConfig { zones floatingPoolName cloudProfileName loadBalancerProvider }
		}
	} } } }`

	cases := map[string]struct {
		reason string
		order  string
		// part is the field of the order's providerSpecificConfig that contains the provider's configuration.
		part string
	}{
		"AWS": {
			reason: "The response contains the ranges of AWS zones.", part: "awsConfig",
			order: `{"awsConfig": {"vpcCidr": "v", "enableIMDSv2": true,
				"awsZones": [{"name": "n", "publicCidr": "p", "internalCidr": "i", "workerCidr": "w"}]}}`,
		},
		"Azure": {
			reason: "The response contains the ranges of Azure zones and the timeout of the NAT gateway.", part: "azureConfig",
			order: `{"azureConfig": {"vnetCidr": "v", "zones": ["3"], "azureZones": [{"name": 1, "cidr": "c"}],
				"enableNatGateway": true, "idleConnectionTimeoutMinutes": 5}}`,
		},
		"GCP": {
			reason: "For GCP the response contains only zones.", part: "gcpConfig",
			order: `{"gcpConfig": {"zones": ["a", "b"]}}`,
		},
		"OpenStack": {
			reason: "The order may omit names that are never null in a response.", part: "openStackConfig",
			order: `{"openStackConfig": {"zones": ["a"], "floatingPoolName": "f", "cloudProfileName": "c", "loadBalancerProvider": "l"}}`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			order := fullOrder(t)
			if err := json.Unmarshal([]byte(tc.order), &order.ProviderSpecificConfig); err != nil {
				t.Fatal(err)
			}

			want := generic(t, order)
			want["providerSpecificConfig"] = want["providerSpecificConfig"].(map[string]any)[tc.part]

			if diff := cmp.Diff(want, clusterConfig(t, query, order)); diff != "" {
				t.Errorf("%s\nclusterConfig: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestClusterConfigOfTheLeastOrder(t *testing.T) {
	t.Parallel()

	const query = `{ runtimeStatus(id: "rt") { runtimeConfiguration { clusterConfig { name dnsConfig { domain } providerSpecificConfig {
		... on OpenStackProviderConfig { floatingPoolName cloudProfileName } } oidcConfig { clientID signingAlgs } } } } }`

	oidc := map[string]any{"clientID": "", "signingAlgs": []any{}}

	got := clusterConfig(t, query, &spec.Cluster{Name: "c"})
	want := map[string]any{"name": "c", "dnsConfig": nil, "providerSpecificConfig": nil, "oidcConfig": oidc}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields that were not ordered must be null: -want +got:\n%s", diff)
	}

	got = clusterConfig(t, query, &spec.Cluster{Name: "c", ProviderSpecificConfig: &spec.Provider{OpenStackConfig: &spec.OpenStack{}}})
	want["providerSpecificConfig"] = map[string]any{"floatingPoolName": "", "cloudProfileName": ""}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("omitted names must be empty: -want +got:\n%s", diff)
	}
}

// clusterConfig runs the query for a runtime with the cluster of the order, and returns clusterConfig from the response.
func clusterConfig(t *testing.T, query string, order *spec.Cluster) map[string]any {
	t.Helper()

	server := startServer(t, runtimes{
		runtimeStatus: func(orders.Caller, string, orders.RuntimeFields) (orders.RuntimeStatus, error) {
			return orders.RuntimeStatus{Cluster: order}, nil
		},
	})

	var answer struct {
		Data struct {
			RuntimeStatus struct {
				RuntimeConfiguration struct{ ClusterConfig map[string]any }
			}
		}
	}

	_, body := post(t, server, asTenant(query))
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%s: %v", body, err)
	}

	return answer.Data.RuntimeStatus.RuntimeConfiguration.ClusterConfig
}

func fullOrder(t *testing.T) *spec.Cluster {
	t.Helper()

	const text = `{
		"name": "n", "kubernetesVersion": "1.33", "provider": "p", "targetSecret": "s", "region": "r", "machineType": "t",
		"machineImage": "i", "machineImageVersion": "v", "diskType": "d", "volumeSizeGB": 1, "workerCidr": "w", "podsCidr": "p",
		"servicesCidr": "s", "autoScalerMin": 1, "autoScalerMax": 2, "maxSurge": 3, "maxUnavailable": 4, "purpose": "p",
		"licenceType": "l", "enableKubernetesVersionAutoUpdate": true, "enableMachineImageVersionAutoUpdate": true, "seed": "s",
		"dnsConfig": {"domain": "d", "providers": [{"domainsInclude": ["d"], "primary": true, "secretName": "s", "type": "t"}]},
		"oidcConfig": {"clientID": "c", "groupsClaim": "g", "issuerURL": "i", "signingAlgs": ["RS256"], "usernameClaim": "u",
			"usernamePrefix": "p"},
		"exposureClassName": "e", "shootNetworkingFilterDisabled": true, "controlPlaneFailureTolerance": "zone", "euAccess": true,
		"additionalWorkers": [{"name": "n", "machineType": "t", "machineImage": "i", "machineImageVersion": "v", "diskType": "d",
			"volumeSizeGB": 1, "autoScalerMin": 2, "autoScalerMax": 3, "maxSurge": 4, "maxUnavailable": 5, "zones": ["z"]}]
	}`

	order := new(spec.Cluster)
	if err := json.Unmarshal([]byte(text), order); err != nil {
		t.Fatal(err)
	}

	return order
}

func generic(t *testing.T, value any) map[string]any {
	t.Helper()

	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}

	return fields
}
