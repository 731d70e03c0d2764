package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// made returns the cluster of an order of plan aws without parameters.
func made() environment.Cluster {
	return environment.Cluster{
		KubernetesVersion: "1.33", MachineType: "m5.xlarge", VolumeType: "gp3", VolumeSizeGB: 80, AutoScalerMin: 4, AutoScalerMax: 9,
		MaxSurge: 3, Zones: []string{"eu-central-1a", "eu-central-1b", "eu-central-1c"},
		NodesCIDR: "10.250.0.0/16", Purpose: "development", Administrators: []string{"anna"},
	}
}

func issuer() *environment.OIDC {
	return &environment.OIDC{
		ClientID: "c", IssuerURL: "https://issuer.example.com", GroupsClaim: "groups", UsernameClaim: "sub", UsernamePrefix: "-",
		SigningAlgs: []string{"RS256"},
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason     string
		plan       string
		parameters string
		current    func(*environment.Cluster)
		want       func(*environment.Cluster)
	}{
		"Nothing": {reason: "F4: absent fields keep their values", plan: planAWS, parameters: `null`},
		"Empty":   {reason: "F4: an empty object changes nothing", plan: planAWS, parameters: `{}`},
		"Nodes": {
			reason: "each bound can be set alone", plan: planAWS, parameters: `{"autoScalerMax":12}`,
			want: func(c *environment.Cluster) { c.AutoScalerMax = 12 },
		},
		"Everything": {
			reason: "all parameters of an update", plan: planAWS,
			parameters: `{"machineType":"m6i.large","autoScalerMin":3,"autoScalerMax":5,"volumeSizeGb":100,"maxSurge":0,
				"maxUnavailable":1,"administrators":["bert","carla"],"oidc":{"clientID":"c","issuerURL":"https://issuer.example.com"}}`,
			want: func(c *environment.Cluster) {
				c.MachineType, c.VolumeSizeGB, c.AutoScalerMin, c.AutoScalerMax = "m6i.large", 100, 3, 5
				c.MaxSurge, c.MaxUnavailable, c.Administrators, c.OIDC = 0, 1, []string{"bert", "carla"}, issuer()
			},
		},
		"NoAdministrators": {reason: "an empty list keeps the administrators", plan: planAWS, parameters: `{"administrators":[]}`},
		"PartOfOIDC": {
			reason: "absent fields of oidc keep their values", plan: planAWS, parameters: `{"oidc":{"groupsClaim":"teams"}}`,
			current: func(c *environment.Cluster) { c.OIDC = issuer() },
			want:    func(c *environment.Cluster) { c.OIDC = issuer(); c.OIDC.GroupsClaim = "teams" },
		},
		"OIDCList": {
			reason: "a list of one equals its entry", plan: planAWS,
			parameters: `{"oidc":{"list":[{"clientID":"c","issuerURL":"https://issuer.example.com"}]}}`,
			want:       func(c *environment.Cluster) { c.OIDC = issuer() },
		},
		"BlankOIDC": {
			reason: "empty fields of oidc change nothing", plan: planAWS, parameters: `{"oidc":{"clientID":"","signingAlgs":[]}}`,
		},
		"PlanChanged": {
			reason: "the numbers of nodes are moved into the bounds of the new plan", plan: planAWS, parameters: `{}`,
			current: func(c *environment.Cluster) { c.AutoScalerMin, c.LicenceType, c.SharedCredentials = 1, "Test", true },
			want:    func(c *environment.Cluster) { c.AutoScalerMin = 3 },
		},
		"MachineOfFormerTimes": {
			reason: "a machine type that is no longer offered does not prevent other changes", plan: planAWS,
			parameters: `{"autoScalerMin":5}`,
			current:    func(c *environment.Cluster) { c.MachineType = "m4.large" },
			want:       func(c *environment.Cluster) { c.MachineType, c.AutoScalerMin = "m4.large", 5 },
		},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			current, want := made(), made()
			if test.current != nil {
				test.current(&current)
			}

			if test.want != nil {
				test.want(&want)
			} else {
				want = current
			}

			before, _ := json.Marshal(current)

			got, err := plan(t, test.plan).Update(current, "", json.RawMessage(test.parameters))
			if err != nil {
				t.Fatalf("\n%s\nUpdate: %v", test.reason, err)
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("\n%s\nupdated: -want +got\n%s", test.reason, diff)
			}

			if after, _ := json.Marshal(current); string(after) != string(before) {
				t.Errorf("%s: the update changed its argument to %s", test.reason, after)
			}
		})
	}
}

func TestUpdateRejects(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason     string
		plan       string
		parameters string
		want       string
	}{
		"Region":       {"the region cannot change", planAWS, `{"region":"us-east-1"}`, "region: the plan has no such parameter"},
		"Purpose":      {"the purpose cannot change", planAWS, `{"purpose":"production"}`, "purpose: the plan has no such parameter"},
		"TrialNodes":   {"trial has a single node", planTrial, `{"autoScalerMax":2}`, "autoScalerMax: the plan has no such parameter"},
		"Machine":      {"machine types are those of the plan", planAWS, `{"machineType":"m4.large"}`, "machineType: value must be one of"},
		"Effective":    {"bounds are checked after the update", planAWS, `{"autoScalerMin":10}`, "autoScalerMin: 10 is greater than autoScalerMax 9"},
		"Zones":        {"Gardener rejects 0 for both", planGCP, `{"autoScalerMin":3,"autoScalerMax":3,"maxSurge":0}`, "maxSurge: both maxSurge and maxUnavailable are 0"},
		"Lowest":       {"the schema's bounds apply", planAWS, `{"autoScalerMin":1}`, "autoScalerMin: minimum: got 1, want 3"},
		"HalfOIDC":     {"an issuer is required", planAWS, `{"oidc":{"clientID":"c"}}`, "oidc.issuerURL: it must look like https://"},
		"Issuer":       {"the issuer must use TLS", planAWS, `{"oidc":{"clientID":"c","issuerURL":"http://x"}}`, "oidc.issuerURL: it must look like https://"},
		"IssuerQuery":  {"the issuer must not have a query", planAWS, `{"oidc":{"clientID":"c","issuerURL":"https://u:p@x/?a"}}`, "oidc.issuerURL: it must look like https://"},
		"Algorithm":    {"algorithms are those that Kubernetes supports", planAWS, `{"oidc":{"clientID":"c","issuerURL":"https://x","signingAlgs":["none"]}}`, "oidc.signingAlgs.0: value must be one of"},
		"TwoIssuers":   {"a cluster has at most one issuer", planAWS, `{"oidc":{"list":[{"clientID":"c","issuerURL":"https://x"},{"clientID":"d","issuerURL":"https://y"}]}}`, "oidc.list: maxItems: got 2, want 1"},
		"BothForms":    {"a list and single fields contradict each other", planAWS, `{"oidc":{"clientID":"c","issuerURL":"https://x","list":[{"clientID":"d","issuerURL":"https://y"}]}}`, "oidc: it has both a list and single fields"},
		"UnknownField": {"unknown fields are rejected", planAWS, `{"oidc":{"clientId":"c"}}`, "oidc.clientId: the plan has no such parameter"},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := plan(t, test.plan).Update(made(), "", json.RawMessage(test.parameters))
			if text := failure.Of(err).Text; !failure.Is(err, failure.Invalid) || !strings.Contains(text, test.want) {
				t.Errorf("\n%s\nwant an error of kind invalid with %q, got %v", test.reason, test.want, err)
			}
		})
	}
}

func TestMayBecome(t *testing.T) {
	t.Parallel()

	aws, azure := plan(t, planAWS), plan(t, planAzure)
	if !aws.MayBecome(aws) {
		t.Error("keeping the plan is no plan change")
	}

	if aws.MayBecome(azure) || plan(t, planTrial).MayBecome(azure) {
		t.Error("a cluster cannot move to another provider")
	}
}
