package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// made returns the cluster of an existing instance of plan aws.
func made() environment.Cluster {
	return environment.Cluster{
		KubernetesVersion: "1.33", MachineType: "m5.xlarge", VolumeType: "gp3", VolumeSizeGB: 80, AutoScalerMin: 4, AutoScalerMax: 9,
		MaxSurge: 3, Zones: []string{"eu-central-1a", "eu-central-1b", "eu-central-1c"},
		NodesCIDR: "10.250.0.0/16", Purpose: "development", Administrators: []string{"anna"},
	}
}

// orderedAs returns an instance with the cluster and the parameters of its order. It has no region, so that updates do
// not check the machine type.
func orderedAs(cluster environment.Cluster, parameters string) environment.Instance {
	return environment.Instance{Request: environment.Request{Cluster: cluster, Parameters: json.RawMessage(parameters)}}
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
			reason: "all parameters that updates may contain", plan: planAWS,
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

			got, err := plan(t, test.plan).Update(orderedAs(current, `{}`), json.RawMessage(test.parameters))
			if err != nil {
				t.Fatalf("\n%s\nUpdate: %v", test.reason, err)
			}

			if diff := cmp.Diff(want, got.Cluster); diff != "" {
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
		"Region":       {"the region cannot change", planAWS, `{"region":"us-east-1"}`, "region cannot be changed after creation"},
		"Purpose":      {"the purpose cannot change", planAWS, `{"purpose":"production"}`, "purpose cannot be changed after creation"},
		"TrialNodes":   {"trial has a single node", planTrial, `{"autoScalerMax":2}`, "autoScalerMax: the plan has no such parameter"},
		"Machine":      {"machine types are those of the plan", planAWS, `{"machineType":"m4.large"}`, `machineType: is not an available value; did you mean "m6i.large"? Available: m6i.large, m6i.xlarge`},
		"Effective":    {"bounds are checked after the update", planAWS, `{"autoScalerMin":10}`, "autoScalerMin: 10 is greater than autoScalerMax 9"},
		"Zones":        {"Gardener rejects 0 for both", planGCP, `{"autoScalerMin":3,"autoScalerMax":3,"maxSurge":0}`, "maxSurge: both maxSurge and maxUnavailable are 0"},
		"Lowest":       {"the schema's bounds apply", planAWS, `{"autoScalerMin":1}`, "autoScalerMin: must be at least 3, but is 1"},
		"HalfOIDC":     {"an issuer is required", planAWS, `{"oidc":{"clientID":"c"}}`, "oidc.issuerURL: must have the form https://"},
		"Issuer":       {"the issuer must use TLS", planAWS, `{"oidc":{"clientID":"c","issuerURL":"http://x"}}`, "oidc.issuerURL: must have the form https://"},
		"IssuerQuery":  {"the issuer must not have a query", planAWS, `{"oidc":{"clientID":"c","issuerURL":"https://u:p@x/?a"}}`, "oidc.issuerURL: must have the form https://"},
		"IssuerMarks":  {"the Provisioner rejects an empty query", planAWS, `{"oidc":{"clientID":"c","issuerURL":"https://x/?"}}`, "oidc.issuerURL: must have the form https://"},
		"IssuerHash":   {"the Provisioner rejects an empty fragment", planAWS, `{"oidc":{"clientID":"c","issuerURL":"https://x/#"}}`, "oidc.issuerURL: must have the form https://"},
		"Algorithm":    {"algorithms are those that Kubernetes supports", planAWS, `{"oidc":{"clientID":"c","issuerURL":"https://x","signingAlgs":["none"]}}`, "oidc.signingAlgs.0: must be one of RS256, RS384"},
		"TwoIssuers":   {"a cluster has at most one issuer", planAWS, `{"oidc":{"list":[{"clientID":"c","issuerURL":"https://x"},{"clientID":"d","issuerURL":"https://y"}]}}`, "oidc.list: must have at most 1 entry, but has 2"},
		"BothForms":    {"a list and individual fields contradict each other", planAWS, `{"oidc":{"clientID":"c","issuerURL":"https://x","list":[{"clientID":"d","issuerURL":"https://y"}]}}`, "oidc: must contain either a list or individual fields"},
		"EmptyTime":    {"an empty text is no time", planAWS, `{"upgradeTime":""}`, "upgradeTime: must not be empty"},
		"ClaimBeside":  {"the broker would ignore the field", planAWS, `{"oidc":{"groupsClaim":"teams","list":[{"clientID":"d","issuerURL":"https://y"}]}}`, "oidc: must contain either a list or individual fields"},
		"UnknownField": {"unknown fields are rejected", planAWS, `{"oidc":{"clientId":"c"}}`, "oidc.clientId: the plan has no such parameter; did you mean \"clientID\"?"},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := plan(t, test.plan).Update(orderedAs(made(), `{}`), json.RawMessage(test.parameters))
			if text := failure.Of(err).Text; !failure.Is(err, failure.Invalid) || !strings.Contains(text, test.want) {
				t.Errorf("\n%s\nwant an error of kind invalid with %q, got %v", test.reason, test.want, err)
			}
		})
	}
}

// TestUpdateRepeatsCreateOnlyParameters sends create-only parameters in updates, like platforms that send all
// parameters with every update. Unchanged values must be removed, and different ones rejected.
func TestUpdateRepeatsCreateOnlyParameters(t *testing.T) {
	t.Parallel()

	aws := environment.Instance{
		Name: "mine", Provider: "aws", Region: "eu-central-1",
		Request: environment.Request{Cluster: made(), Parameters: json.RawMessage(`{"name":"as sent","region":"eu-central-1","zones":["eu-central-1c"]}`)},
	}
	trial := environment.Instance{
		Provider: "aws", Region: "eu-west-1",
		Request: environment.Request{Cluster: made(), Parameters: json.RawMessage(`{"region":"europe"}`)},
	}
	trial.Request.Cluster.Zones = []string{"eu-west-1a"}

	own := environment.Instance{Request: environment.Request{Cluster: environment.Cluster{
		Own: &environment.OwnCluster{ShootName: "c-1", ShootDomain: "c-1.example.com"},
	}}}

	cases := map[string]struct {
		reason     string
		plan       string
		instance   environment.Instance
		parameters string
		// kept are the parameters that remain.
		kept, wrong string
	}{
		"Protection":     {"an updatable parameter", planAWS, aws, `{"deletionProtection":true}`, `{"deletionProtection":true}`, ""},
		"AsSent":         {"equal to the order", planAWS, aws, `{"zones":["eu-central-1c"],"name":"as sent"}`, `{}`, ""},
		"WithChange":     {"other parameters change", planAWS, aws, `{"region":"eu-central-1","autoScalerMin":5}`, `{"autoScalerMin":5}`, ""},
		"AsResolved":     {"equal to what the order resolved to", planAWS, aws, `{"name":"mine","purpose":"development"}`, `{}`, ""},
		"Zones":          {"all zones of the cluster", planAWS, aws, `{"zones":["eu-central-1a","eu-central-1b","eu-central-1c"]}`, `{}`, ""},
		"Networking":     {"a part of an object", planAWS, aws, `{"networking":{"nodes":"10.250.0.0/16"}}`, `{}`, ""},
		"Area":           {"the area of the region", planTrial, trial, `{"region":"europe"}`, `{}`, ""},
		"Provider":       {"both forms of a provider's name", planTrial, trial, `{"provider":"AWS"}`, `{}`, ""},
		"OwnCluster":     {"the description of the tenant's cluster", planOwnCluster, own, `{"shootName":"c-1","shootDomain":"c-1.example.com"}`, `{}`, ""},
		"OtherRegion":    {"a different value", planAWS, aws, `{"region":"us-east-1"}`, "", "parameters: region cannot be changed after creation"},
		"OtherZones":     {"a part of a list", planAWS, aws, `{"zones":["eu-central-1a"]}`, "", "zones cannot be changed after creation"},
		"OtherNetworks":  {"one part differs", planAWS, aws, `{"networking":{"nodes":"10.250.0.0/16","pods":"10.9.0.0/16"}}`, "", "networking cannot be changed after creation"},
		"OtherShoot":     {"a different value", planOwnCluster, own, `{"shootName":"c-2"}`, "", "shootName cannot be changed after creation"},
		"OtherArea":      {"a different value", planTrial, trial, `{"region":"us"}`, "", "region cannot be changed after creation"},
		"OtherProvider":  {"a different value", planTrial, trial, `{"provider":"azure"}`, "", "provider cannot be changed after creation"},
		"Number":         {"a value of another type", planAWS, aws, `{"region":5}`, "", "region cannot be changed after creation"},
		"Null":           {"null does not equal the value", planAWS, aws, `{"region":null}`, "", "region cannot be changed after creation"},
		"Empty":          {"an empty text does not equal the value", planAWS, aws, `{"purpose":""}`, "", "purpose cannot be changed after creation"},
		"TwoViolations":  {"all violations are reported together", planAWS, aws, `{"region":"x","autoScalerMin":"y"}`, "", "region cannot be changed after creation; autoScalerMin: "},
		"OfAnotherPlan":  {"the plan has never had the parameter", planAWS, aws, `{"provider":"aws"}`, "", "provider: the plan has no such parameter"},
		"UnknownToOrder": {"no plan has the parameter", planAWS, aws, `{"regoin":"eu-central-1"}`, "", "regoin: the plan has no such parameter"},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			updated, err := plan(t, test.plan).Update(test.instance, json.RawMessage(test.parameters))

			switch text := failure.Of(err).Text; {
			case test.wrong == "" && err != nil:
				t.Errorf("%s: %v", test.reason, err)
			case test.wrong != "" && (!failure.Is(err, failure.Invalid) || !strings.Contains(text, test.wrong)):
				t.Errorf("%s: want an error of kind invalid with %q, got %v", test.reason, test.wrong, err)
			case string(updated.Parameters) != test.kept:
				t.Errorf("%s: %q remain, want %q", test.reason, updated.Parameters, test.kept)
			}
		})
	}
}

// TestUpdateIgnoresAbsentValues checks that values which count as absent do not replace the stored parameters, which a fetch returns, and
// that the fields of oidc which an update omits stay in them.
func TestUpdateIgnoresAbsentValues(t *testing.T) {
	t.Parallel()

	const stored = `{"administrators":["anna"],"oidc":{"clientID":"c","issuerURL":"https://issuer.example.com"}}`

	cases := map[string]struct{ reason, ordered, sent, kept string }{
		"Administrators": {"an empty list changes nothing", stored, `{"administrators":[],"autoScalerMin":5}`, `{"autoScalerMin":5}`},
		"EmptyOIDC":      {"no field changes", stored, `{"oidc":{}}`, `{}`},
		"BlankOIDC":      {"no field changes", stored, `{"oidc":{"clientID":"","signingAlgs":[]}}`, `{}`},
		"PartOfOIDC": {
			"the other fields are unchanged", stored, `{"oidc":{"groupsClaim":"teams","clientID":""}}`,
			`{"oidc":{"clientID":"c","groupsClaim":"teams","issuerURL":"https://issuer.example.com"}}`,
		},
		"List": {
			"a list of one has the form in which it was sent", stored, `{"oidc":{"list":[{"clientID":"d","issuerURL":"https://x.example.com"}]}}`,
			`{"oidc":{"list":[{"clientID":"d","issuerURL":"https://x.example.com"}]}}`,
		},
		"OfList": {
			"the fields of a stored list are unchanged, too", `{"oidc":{"list":[{"clientID":"c","issuerURL":"https://issuer.example.com"}]}}`,
			`{"oidc":{"usernameClaim":"email"}}`,
			`{"oidc":{"clientID":"c","issuerURL":"https://issuer.example.com","usernameClaim":"email"}}`,
		},
		"FirstOIDC": {
			"nothing is stored", `{}`, `{"oidc":{"clientID":"c","issuerURL":"https://issuer.example.com"}}`,
			`{"oidc":{"clientID":"c","issuerURL":"https://issuer.example.com"}}`,
		},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			cluster := made()
			cluster.OIDC = issuer()

			updated, err := plan(t, planAWS).Update(orderedAs(cluster, test.ordered), json.RawMessage(test.sent))
			if err != nil || string(updated.Parameters) != test.kept {
				t.Errorf("%s: got %s, %v, want %s", test.reason, updated.Parameters, err, test.kept)
			}
		})
	}
}

// TestUpdateStoresMovedNodes checks that an update which moves the limits of the autoscaler into the bounds of the plan changes the stored
// parameters, too.
func TestUpdateStoresMovedNodes(t *testing.T) {
	t.Parallel()

	cases := map[string]struct{ reason, plan, ordered, sent, kept string }{
		"Omitted":    {"a fetch returns what is in effect", planAWS, `{"autoScalerMin":1,"autoScalerMax":500}`, ``, `{"autoScalerMax":300,"autoScalerMin":3}`},
		"Null":       {"null counts as absent", planAWS, `{"autoScalerMin":1}`, `null`, `{"autoScalerMin":3}`},
		"OtherField": {"next to the sent parameters", planAWS, `{"autoScalerMin":1}`, `{"maxSurge":2}`, `{"autoScalerMin":3,"maxSurge":2}`},
		"Sent":       {"a sent value takes precedence", planAWS, `{"autoScalerMin":1}`, `{"autoScalerMin":4}`, `{"autoScalerMin":4}`},
		"NotOrdered": {"a fetch returns no defaults", planAWS, `{"name":"x"}`, ``, ``},
		"InBounds":   {"nothing moves", planAWS, `{"maxSurge":2}`, `{"maxSurge":2}`, `{"maxSurge":2}`},
		"Fixed":      {"platforms may repeat an ordered value that no update can change", planTrial, `{"autoScalerMin":1,"autoScalerMax":500}`, ``, ``},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			cluster := made()
			cluster.AutoScalerMin, cluster.AutoScalerMax, cluster.Zones = 1, 500, cluster.Zones[:1]

			updated, err := plan(t, test.plan).Update(orderedAs(cluster, test.ordered), json.RawMessage(test.sent))
			if err != nil || string(updated.Parameters) != test.kept {
				t.Errorf("%s: got %s, %v, want %s", test.reason, updated.Parameters, err, test.kept)
			}
		})
	}
}

// TestUpgrade checks which Kubernetes version a maintenance update or a change of the plan orders. New clusters get 1.34.
func TestUpgrade(t *testing.T) {
	t.Parallel()

	cases := map[string]struct{ reason, current, want string }{
		"older":     {"the next minor version", "1.33.9", "1.34"},
		"two older": {"Kubernetes cannot skip a minor version", "1.32.13", "1.33"},
		"far older": {"only one minor version at a time", "1.29", "1.30"},
		"same":      {"Gardener chooses the patch version", "1.34.2", "1.34.2"},
		"newer":     {"Kubernetes cannot be downgraded", "1.36.1", "1.36.1"},
		"unknown":   {"the cluster has not reported its version", "", ""},
	}

	for name, c := range cases {
		if got := plan(t, planAWS).Upgrade(environment.Cluster{KubernetesVersion: c.current}).KubernetesVersion; got != c.want {
			t.Errorf("%s: %s: version %q becomes %q, want %q", name, c.reason, c.current, got, c.want)
		}
	}

	own := environment.Cluster{KubernetesVersion: "1.30", Own: &environment.OwnCluster{}}
	if got := plan(t, planOwnCluster).Upgrade(own).KubernetesVersion; got != own.KubernetesVersion {
		t.Errorf("the tenant maintains the cluster, but it gets version %q", got)
	}
}

func TestMayBecome(t *testing.T) {
	t.Parallel()

	aws, azure := plan(t, planAWS), plan(t, planAzure)
	if !aws.MayBecome(aws) {
		t.Error("an unchanged plan is reported as a plan change")
	}

	if aws.MayBecome(azure) || plan(t, planTrial).MayBecome(azure) {
		t.Error("a plan change to another provider is allowed")
	}

	for name, c := range map[string]struct {
		enabled []string
		want    bool
	}{
		"all plans":        {nil, true},
		"both plans":       {[]string{"azure_lite", "azure"}, true},
		"without the plan": {[]string{"azure_lite", "aws"}, false},
	} {
		limited := options()
		limited.EnablePlans = c.enabled

		read, err := catalog.Load(shipped(t, nil), limited)
		if err != nil {
			t.Fatal(err)
		}

		lite, _ := read.ByID(planAzureLite)
		target, _ := read.ByID(planAzure)

		if got := lite.MayBecome(target); got != c.want {
			t.Errorf("%s: a change to the plan is allowed: %t", name, got)
		}

		if got := strings.Contains(string(read.Published().Body), `"plan_updateable":true`); got != c.want {
			t.Errorf("%s: the catalog offers a change of the plan: %t", name, got)
		}
	}
}
