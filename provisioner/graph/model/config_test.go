package model_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

// TestConfigOf relies on the schema: an order and what is read of it have the same names.
func TestConfigOf(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		order  string
		// part is the field of the order that the provider's part stands in.
		part string
	}{
		"AWS": {
			reason: "Zones of AWS keep their ranges.", part: "awsConfig",
			order: `{"awsConfig": {"vpcCidr": "v", "enableIMDSv2": true,
				"awsZones": [{"name": "n", "publicCidr": "p", "internalCidr": "i", "workerCidr": "w"}]}}`,
		},
		"Azure": {
			reason: "Zones of Azure keep their ranges, and the NAT gateway its time.", part: "azureConfig",
			order: `{"azureConfig": {"vnetCidr": "v", "zones": ["3"], "azureZones": [{"name": 1, "cidr": "c"}],
				"enableNatGateway": true, "idleConnectionTimeoutMinutes": 5}}`,
		},
		"GCP": {
			reason: "GCP has zones only.", part: "gcpConfig",
			order: `{"gcpConfig": {"zones": ["a", "b"]}}`,
		},
		"OpenStack": {
			reason: "OpenStack has names that may be left out in an order and not when they are read.", part: "openStackConfig",
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

			got := generic(t, model.ConfigOf(order))

			want := generic(t, order)
			want["providerSpecificConfig"] = want["providerSpecificConfig"].(map[string]any)[tc.part]

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nConfigOf(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConfigOfNothing(t *testing.T) {
	t.Parallel()

	got := model.ConfigOf(&model.GardenerConfigInput{Name: "c"})
	if got.ProviderSpecificConfig != nil || got.DNSConfig != nil || got.OIDCConfig != nil || *got.Name != "c" {
		t.Errorf("what was not ordered is nil: got %+v", got)
	}
}

func fullOrder(t *testing.T) *model.GardenerConfigInput {
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

	order := new(model.GardenerConfigInput)
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
