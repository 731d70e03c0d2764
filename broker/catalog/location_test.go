package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/failure"
)

func TestLocation(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason     string
		plan       string
		platform   string
		parameters string
		want       string // provider, region, and EU where access is restricted
	}{
		"Default":          {"without anything the plan decides", planAWS, "", `{}`, "aws eu-central-1"},
		"Platform":         {"the platform's region has a default of its own", planAWS, "cf-us10", `{}`, "aws us-east-1"},
		"PlatformElse":     {"a platform's region may have none for the provider", planAzure, "cf-us10", `{}`, "azure eastus"},
		"Order":            {"the order counts before the platform", planAWS, "cf-us10", `{"region":"ap-south-1"}`, "aws ap-south-1"},
		"EUAWS":            {"only one region is allowed", planAWS, "cf-eu11", `{}`, "aws eu-central-1 EU"},
		"EUAzure":          {"only one region is allowed, and it is not the plan's default", planAzure, "cf-ch20", `{}`, "azure switzerlandnorth EU"},
		"EULite":           {"it is the provider that counts", planAzureLite, "cf-ch20", `{"region":"switzerlandnorth"}`, "azure switzerlandnorth EU"},
		"KSA":              {"data stays in the kingdom", planGCP, "cf-sa30", `{}`, "gcp me-central2"},
		"ConvergedCloud":   {"it has regions with restricted access too", planConvergedCloud, "cf-eu01", `{}`, "openstack eu-de-2 EU"},
		"TrialDefault":     {"the first offer and the default part of the world", planTrial, "elsewhere", `{}`, "azure westeurope"},
		"TrialMapped":      {"the platform's region has a part of the world", planTrial, "cf-us10", `{}`, "azure eastus"},
		"TrialOrder":       {"the order counts before the mapping", planTrial, "cf-us10", `{"region":"asia","provider":"gcp"}`, "gcp asia-south1"},
		"TrialEU":          {"the provider is one that is allowed, and its region the one that is", planTrial, "cf-eu11", `{}`, "aws eu-central-1 EU"},
		"TrialEUOrder":     {"a part of the world cannot widen the allowed regions", planTrial, "cf-ch20", `{"region":"us"}`, "azure switzerlandnorth EU"},
		"FreeAWS":          {"1 means AWS", planFree, "cf-eu10", `{}`, "aws eu-central-1"},
		"FreeAWSRegion":    {"the order's region is used", planFree, "cf-eu10", `{"region":"eu-west-2"}`, "aws eu-west-2"},
		"FreeAzure":        {"2 means Azure", planFree, "cf-eu20", `{}`, "azure westeurope"},
		"FreeAzureDefault": {"only the first digit counts", planFree, "cf-xx21", `{}`, "azure eastus"},
		"FreeElsewhere":    {"a platform without digits gets the first offer", planFree, "home", `{}`, "aws eu-central-1"},
		"FreeEU":           {"access is restricted for free clusters too", planFree, "cf-ch20", `{}`, "azure switzerlandnorth EU"},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := resolve(plan(t, test.plan), order{
				InstanceID: instanceID, PlatformRegion: test.platform, Parameters: json.RawMessage(test.parameters),
			})
			if err != nil {
				t.Fatalf("\n%s\nResolve: %v", test.reason, err)
			}

			place := got.Provider + " " + got.Region
			if got.Cluster.EUAccess {
				place += " EU"
			}

			if diff := cmp.Diff(test.want, place); diff != "" {
				t.Errorf("\n%s\nplace: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

func TestLocationRejected(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason     string
		plan       string
		platform   string
		parameters string
		want       string
	}{
		"EURegion":      {"data may not leave", planAWS, "cf-eu11", `{"region":"us-east-1"}`, `region: "us-east-1" is not allowed in platform region cf-eu11, only eu-central-1`},
		"EUProvider":    {"a provider that is not named is not allowed", planGCP, "cf-eu11", `{}`, "plan gcp is not available in platform region cf-eu11, where only aws may be used"},
		"TrialProvider": {"the order cannot widen the allowed providers", planTrial, "cf-eu11", `{"provider":"Azure"}`, "provider: plan trial is not available on Azure in platform region cf-eu11"},
		"FreeGCP":       {"free is not on every provider", planFree, "cf-eu30", `{}`, "plan free is not available on gcp in platform region cf-eu30"},
		"FreeUnknown":   {"a digit that nobody knows is no reason to guess", planFree, "cf-eu90", `{}`, "plan free is not available on 9 in platform region cf-eu90"},
		"FreeRegion":    {"regions are those of the provider", planFree, "cf-eu10", `{"region":"westeurope"}`, `region: "westeurope" is not a region of AWS`},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := resolve(plan(t, test.plan), order{
				InstanceID: instanceID, PlatformRegion: test.platform, Parameters: json.RawMessage(test.parameters),
			})
			if text := failure.Of(err).Text; !failure.Is(err, failure.Invalid) || !strings.Contains(text, test.want) {
				t.Errorf("\n%s\nwant an error of kind invalid with %q, got %v", test.reason, test.want, err)
			}
		})
	}
}

// TestLimitedMachines has a machine type in some zones of some regions only.
func TestLimitedMachines(t *testing.T) {
	t.Parallel()

	content := string(file(t, "providers/aws.yaml")) + "\nlimited:\n  m5.xlarge: {eu-central-1: [a, b], us-east-1: [f]}\n"

	changed, err := catalog.Load(shipped(t, map[string]string{"providers/aws.yaml": content}), options())
	if err != nil {
		t.Fatal(err)
	}

	aws, err := changed.Plan(serviceID, planAWS)
	if err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason     string
		parameters string
		zones      []string
		refused    string
	}{
		"Fewer":     {"the cluster has the zones that there are", `{"machineType":"m5.xlarge"}`, []string{"eu-central-1a", "eu-central-1b"}, ""},
		"Other":     {"other machine types are not concerned", `{"machineType":"m5.2xlarge"}`, []string{"eu-central-1a", "eu-central-1b", "eu-central-1c"}, ""},
		"Zone":      {"a zone without the machine type cannot be ordered", `{"machineType":"m5.xlarge","zones":["eu-central-1c"]}`, nil, "zones: zone \"eu-central-1c\" is not available for m5.xlarge in eu-central-1, only eu-central-1a, eu-central-1b"},
		"NotInThat": {"the error names the regions that have it", `{"machineType":"m5.xlarge","region":"eu-west-1"}`, nil, "machineType: m5.xlarge is not available in eu-west-1, only in eu-central-1, us-east-1"},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := resolve(aws, order{InstanceID: instanceID, Parameters: json.RawMessage(test.parameters)})
			if test.refused != "" {
				if text := failure.Of(err).Text; !strings.Contains(text, test.refused) {
					t.Errorf("\n%s\nwant %q, got %v", test.reason, test.refused, err)
				}

				return
			}

			if diff := cmp.Diff(test.zones, got.Cluster.Zones); diff != "" || err != nil {
				t.Errorf("\n%s\nzones: %v, -want +got\n%s", test.reason, err, diff)
			}
		})
	}

	_, err = aws.Update(made(), "eu-central-1", json.RawMessage(`{"machineType":"m5.xlarge"}`))
	if text := failure.Of(err).Text; !strings.Contains(text, `zone "eu-central-1c" is not available for m5.xlarge in eu-central-1`) {
		t.Errorf("an update to a machine type that a zone of the cluster does not have gives %v", err)
	}
}
