package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const instanceID = "0f5b2c7e-1111-2222-3333-444455556666"

func TestResolveDefaults(t *testing.T) {
	t.Parallel()

	standard := environment.Cluster{
		KubernetesVersion: "1.34", VolumeSizeGB: 80, AutoScalerMin: 3, AutoScalerMax: 20, MaxSurge: 3,
		NodesCIDR: "10.250.0.0/16", PodsCIDR: "10.96.0.0/13", ServicesCIDR: "10.104.0.0/13",
		Purpose: "development", Administrators: []string{"anna"},
	}
	trial := standard
	trial.AutoScalerMin, trial.AutoScalerMax, trial.MaxSurge, trial.Purpose = 1, 1, 1, "evaluation"
	trial.LicenceType, trial.SharedCredentials = "TestDevelopmentAndDemo", true

	on := func(cluster environment.Cluster, machine, volume string, zones ...string) environment.Cluster {
		cluster.MachineType, cluster.VolumeType, cluster.Zones = machine, volume, zones

		return cluster
	}

	cases := map[string]struct {
		reason string
		plan   string
		order  order
		want   resolved
	}{
		"AWS": {
			reason: "aws requires no parameters",
			plan:   planAWS,
			want: resolved{
				Provider: "aws", Region: "eu-central-1", Name: "0f5b2c7e",
				Cluster: on(standard, "m6i.large", "gp3", "eu-central-1a", "eu-central-1b", "eu-central-1c"),
			},
		},
		"Azure": {
			reason: "azure requires no parameters, null equals an absent value",
			plan:   planAzure,
			order:  order{Parameters: json.RawMessage("null"), InstanceName: "my cluster!"},
			want: resolved{
				Provider: "azure", Region: "eastus", Name: "my-cluster",
				Cluster: on(standard, "Standard_D2s_v5", "StandardSSD_LRS", "1", "2", "3"),
			},
		},
		"GCP": {
			reason: "gcp requires no parameters, an empty object equals an absent value",
			plan:   planGCP,
			order:  order{Parameters: json.RawMessage("{}")},
			want: resolved{
				Provider: "gcp", Region: "europe-west3", Name: "0f5b2c7e",
				Cluster: on(standard, "n2-standard-2", "pd-balanced", "europe-west3-a", "europe-west3-b", "europe-west3-c"),
			},
		},
		"Trial": {
			reason: "trial requires no parameters, the platform region decides on the area",
			plan:   planTrial,
			order:  order{PlatformRegion: "cf-us10"},
			want: resolved{
				Provider: "azure", Region: "eastus", Name: "0f5b2c7e",
				Cluster: on(trial, "Standard_D4s_v5", "StandardSSD_LRS", "2"),
			},
		},
		"TrialElsewhere": {
			reason: "provider and region of the order override the platform region",
			plan:   planTrial,
			order: order{
				PlatformRegion: "cf-us10", Parameters: json.RawMessage(`{"provider":"AWS","region":"asia","name":"t"}`),
			},
			want: resolved{
				Provider: "aws", Region: "ap-southeast-1", Name: "t",
				Cluster: on(trial, "m6i.xlarge", "gp3", "ap-southeast-1c"),
			},
		},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			test.order.InstanceID, test.order.User = instanceID, "anna"

			got, err := resolve(plan(t, test.plan), test.order)
			if err != nil {
				t.Fatalf("\n%s\nResolve: %v", test.reason, err)
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("\n%s\nresolved: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

func TestResolveUsesEveryParameter(t *testing.T) {
	t.Parallel()

	got, err := resolve(plan(t, planAWS), order{
		InstanceID: instanceID, User: "anna", Parameters: json.RawMessage(`{
			"name": "mine", "region": "us-east-1", "machineType": "m5.2xlarge", "autoScalerMin": 4, "autoScalerMax": 9,
			"maxSurge": 0, "maxUnavailable": 2, "zones": ["us-east-1d", "us-east-1f"], "volumeSizeGb": 120,
			"purpose": "production", "administrators": ["bert", "carla"]}`),
	})
	if err != nil {
		t.Fatal(err)
	}

	want := resolved{
		Provider: "aws", Region: "us-east-1", Name: "mine",
		Cluster: environment.Cluster{
			KubernetesVersion: "1.34", MachineType: "m5.2xlarge", VolumeType: "gp3", VolumeSizeGB: 120,
			AutoScalerMin: 4, AutoScalerMax: 9, MaxUnavailable: 2, Zones: []string{"us-east-1d", "us-east-1f"},
			NodesCIDR: "10.250.0.0/16", PodsCIDR: "10.96.0.0/13", ServicesCIDR: "10.104.0.0/13",
			Purpose: "production", Administrators: []string{"bert", "carla"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resolved: -want +got\n%s", diff)
	}
}

func TestResolveRejects(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason     string
		plan       string
		parameters string
		want       []string
	}{
		"UnknownName":      {reason: "unknown parameters are rejected", plan: planAWS, parameters: `{"regoin":"x"}`, want: []string{"regoin: the plan has no such parameter; did you mean \"region\"?"}},
		"TargetSecret":     {reason: "tenants cannot choose the credentials", plan: planAWS, parameters: `{"targetSecret":"x"}`, want: []string{"targetSecret: the plan has no such parameter"}},
		"OtherPlans":       {reason: "trial has a single node", plan: planTrial, parameters: `{"autoScalerMin":3}`, want: []string{"autoScalerMin: the plan has no such parameter"}},
		"Everything":       {reason: "all violations are reported together", plan: planAWS, parameters: `{"autoScalerMin":1,"name":"a b","region":"x"}`, want: []string{"autoScalerMin: must be at least 3, but is 1", "name: may contain only letters, digits and dashes", "region: must be one of eu-central-1, eu-west-1"}},
		"Type":             {reason: "the types of the schema apply", plan: planAWS, parameters: `{"autoScalerMin":"3"}`, want: []string{"autoScalerMin: must be an integer, but is a string"}},
		"ListTexts":        {reason: "texts about lists contain no keywords", plan: planAWS, parameters: `{"zones":["eu-central-1a","eu-central-1a"],"administrators":[""]}`, want: []string{"zones: entries 1 and 2 are equal", "administrators.0: must not be empty"}},
		"NoZones":          {reason: "an empty list is no choice", plan: planAWS, parameters: `{"zones":[]}`, want: []string{"zones: must not be empty"}},
		"LongName":         {reason: "texts about lengths contain no keywords", plan: planAWS, parameters: `{"name":"` + strings.Repeat("x", 65) + `"}`, want: []string{"name: must have at most 64 characters, but has 65"}},
		"Duplicate":        {reason: "decoders disagree on repeated fields", plan: planAWS, parameters: `{"oidc":{"clientID":"a"},"oidc":{"clientID":"b"}}`, want: []string{"the JSON text has the field \"oidc\" more than once"}},
		"HugeNumber":       {reason: "exact arithmetic on this number takes seconds", plan: planAWS, parameters: `{"autoScalerMin":1e999000}`, want: []string{"the JSON text has a number with an exponent beyond 308"}},
		"Administrators":   {reason: "the Provisioner accepts 100 administrators", plan: planAWS, parameters: `{"administrators":["x"` + strings.Repeat(`,"x"`, 100) + `]}`, want: []string{"administrators: must have at most 100 entries, but has 101"}},
		"Administrator":    {reason: "the Provisioner accepts names of 256 characters", plan: planAWS, parameters: `{"administrators":["` + strings.Repeat("ü", 257) + `"]}`, want: []string{"administrators.0: must have at most 256 characters, but has 257"}},
		"AdministratorTab": {reason: "the Provisioner rejects control characters", plan: planAWS, parameters: `{"administrators":["anna","be\trt","carl\n","\u0085"]}`, want: []string{"administrators.1: must not contain control characters", "administrators.2: must not contain control characters", "administrators.3: must not contain control characters"}},
		"Issuer":           {reason: "the issuer in a list is limited, too", plan: planAWS, parameters: `{"oidc":{"list":[{"issuerURL":"` + strings.Repeat("x", 1025) + `"}]}}`, want: []string{"oidc.list.0.issuerURL: must have at most 1024 characters, but has 1025"}},
		"Fraction":         {reason: "numbers of nodes are integers", plan: planAWS, parameters: `{"autoScalerMin":3.0}`, want: []string{"autoScalerMin: must be an integer without a fraction or an exponent"}},
		"Range":            {reason: "the schema's bounds apply", plan: planAWS, parameters: `{"volumeSizeGb":100000}`, want: []string{"volumeSizeGb: must be at most 500, but is"}},
		"MinOverMax":       {reason: "bounds are checked after the defaults", plan: planAWS, parameters: `{"autoScalerMin":30}`, want: []string{"autoScalerMin: 30 is greater than autoScalerMax 20"}},
		"TooManyZones":     {reason: "each zone needs a node", plan: planGCP, parameters: `{"region":"us-central1","autoScalerMax":3,"zones":["us-central1-a","us-central1-b","us-central1-c","us-central1-f"]}`, want: []string{"autoScalerMax: 3 is less than the number of zones (4)"}},
		"ForeignZone":      {reason: "zones are those of the region", plan: planAWS, parameters: `{"zones":["us-east-1a"]}`, want: []string{`zones: zone "us-east-1a" is not available for m6i.large in eu-central-1; the available zones are eu-central-1a, eu-central-1b, eu-central-1c`}},
		"NoReplacement":    {reason: "Gardener rejects 0 for both", plan: planAWS, parameters: `{"maxSurge":0}`, want: []string{"maxSurge: both maxSurge and maxUnavailable are 0"}},
		"UnknownProvider":  {reason: "trial is limited to its providers", plan: planTrial, parameters: `{"provider":"acme"}`, want: []string{"provider: must be one of Azure, AWS, GCP"}},
		"ProviderElsewere": {reason: "other plans have a single provider", plan: planAWS, parameters: `{"provider":"aws"}`, want: []string{"provider: the plan has no such parameter"}},
		"UpgradeTime":      {reason: "a new instance has no upgrade; the plan lists the parameter for updates", plan: planAWS, parameters: `{"upgradeTime":"2030-01-02T22:00:00Z"}`, want: []string{"parameters: upgradeTime can only be set in an update"}},
		"OwnUpgradeTime":   {reason: "the tenant upgrades an own cluster, so no update has the parameter", plan: planOwnCluster, parameters: `{"upgradeTime":"2030-01-02T22:00:00Z"}`, want: []string{"upgradeTime: the plan has no such parameter"}},
		"Rubbish":          {reason: "parameters must be JSON", plan: planAWS, parameters: `{`, want: []string{"the parameters are not valid JSON"}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := resolve(plan(t, test.plan), order{InstanceID: instanceID, Parameters: json.RawMessage(test.parameters)})
			if !failure.Is(err, failure.Invalid) {
				t.Fatalf("\n%s\nwant an error of kind invalid, got %v", test.reason, err)
			}

			for _, want := range test.want {
				if text := failure.Of(err).Text; !strings.Contains(text, want) {
					t.Errorf("\n%s\nthe error does not mention %s: %s", test.reason, want, text)
				}
			}
		})
	}
}

func TestZonesDependOnTheInstance(t *testing.T) {
	t.Parallel()

	chosen := map[string]int{}

	for i := range 60 {
		ordered := order{InstanceID: strings.Repeat("i", i+1)}

		first, err := resolve(plan(t, planTrial), ordered)
		if err != nil {
			t.Fatal(err)
		}

		second, err := resolve(plan(t, planTrial), ordered)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("the same order resolved differently: -first +second\n%s", diff)
		}

		chosen[strings.Join(first.Cluster.Zones, ",")]++
	}

	if len(chosen) != 3 {
		t.Errorf("60 instances use only the zones %v, want all three", chosen)
	}
}

func TestRegionWithFewZones(t *testing.T) {
	t.Parallel()

	got, err := resolve(plan(t, planAWS), order{
		InstanceID: instanceID, Parameters: json.RawMessage(`{"region":"us-west-1"}`),
	})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"us-west-1a", "us-west-1b"}, got.Cluster.Zones); diff != "" {
		t.Errorf("zones: -want +got\n%s", diff)
	}
}

func TestRuntimeName(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		order  order
		want   string
	}{
		"Parameter": {reason: "the name in the order is preferred", order: order{InstanceID: instanceID, InstanceName: "b", Parameters: json.RawMessage(`{"name":"a"}`)}, want: "a"},
		"Instance":  {reason: "else the name of the instance", order: order{InstanceID: instanceID, InstanceName: "über_mich"}, want: "ber-mich"},
		"ID":        {reason: "else the first part of the ID", order: order{InstanceID: instanceID, InstanceName: "äöü"}, want: "0f5b2c7e"},
		"Neither":   {reason: "an ID without usable characters", order: order{InstanceID: "~"}, want: "runtime"},
		"Long":      {reason: "long names are truncated", order: order{InstanceID: strings.Repeat("a", 63) + "~~" + strings.Repeat("b", 99)}, want: strings.Repeat("a", 63)},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := resolve(plan(t, planTrial), test.order)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, got.Name); diff != "" {
				t.Errorf("\n%s\nname: -want +got\n%s", test.reason, diff)
			}
		})
	}
}
