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
		want       string // provider, region, and EU if access is restricted
	}{
		"Default":          {"the plan's default", planAWS, "", `{}`, "aws eu-central-1"},
		"Platform":         {"the platform region's default", planAWS, "cf-us10", `{}`, "aws us-east-1"},
		"PlatformElse":     {"a platform region need not have a default for the provider", planAzure, "cf-us10", `{}`, "azure eastus"},
		"Order":            {"the order overrides the platform region", planAWS, "cf-us10", `{"region":"ap-south-1"}`, "aws ap-south-1"},
		"EUAWS":            {"the only allowed region", planAWS, "cf-eu11", `{}`, "aws eu-central-1 EU"},
		"EUAzure":          {"the only allowed region overrides the plan's default", planAzure, "cf-ch20", `{}`, "azure switzerlandnorth EU"},
		"EULite":           {"the platform region's restriction depends on the provider", planAzureLite, "cf-ch20", `{"region":"switzerlandnorth"}`, "azure switzerlandnorth EU"},
		"KSA":              {"the platform region keeps data in the kingdom", planGCP, "cf-sa30", `{}`, "gcp me-central2"},
		"ConvergedCloud":   {"the platform region also has regions with restricted access", planConvergedCloud, "cf-eu01", `{}`, "openstack eu-de-2 EU"},
		"TrialDefault":     {"the first offer and the default area", planTrial, "elsewhere", `{}`, "azure westeurope"},
		"TrialMapped":      {"the platform region's area", planTrial, "cf-us10", `{}`, "azure eastus"},
		"TrialOrder":       {"the order overrides the platform region's area", planTrial, "cf-us10", `{"region":"asia","provider":"gcp"}`, "gcp asia-south1"},
		"TrialEU":          {"the allowed provider and its allowed region", planTrial, "cf-eu11", `{}`, "aws eu-central-1 EU"},
		"TrialEUOrder":     {"the area cannot override the allowed regions", planTrial, "cf-ch20", `{"region":"us"}`, "azure switzerlandnorth EU"},
		"FreeAWS":          {"the digit 1 is AWS", planFree, "cf-eu10", `{}`, "aws eu-central-1"},
		"FreeAWSRegion":    {"the region of the order", planFree, "cf-eu10", `{"region":"eu-west-2"}`, "aws eu-west-2"},
		"FreeAzure":        {"the digit 2 is Azure", planFree, "cf-eu20", `{}`, "azure westeurope"},
		"FreeAzureDefault": {"only the first digit counts", planFree, "cf-xx21", `{}`, "azure eastus"},
		"FreeElsewhere":    {"without digits, the first offer", planFree, "home", `{}`, "aws eu-central-1"},
		"FreeEU":           {"restricted access applies to free clusters, too", planFree, "cf-ch20", `{}`, "azure switzerlandnorth EU"},
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
		"EURegion":      {"the region is not allowed", planAWS, "cf-eu11", `{"region":"us-east-1"}`, `region: "us-east-1" is not allowed in platform region cf-eu11, which allows only eu-central-1`},
		"EUProvider":    {"the provider is not allowed", planGCP, "cf-eu11", `{}`, "plan gcp is not available in platform region cf-eu11, where the allowed providers are aws"},
		"TrialProvider": {"the order cannot override the allowed providers", planTrial, "cf-eu11", `{"provider":"Azure"}`, "provider: plan trial is not available on Azure in platform region cf-eu11"},
		"FreeGCP":       {"the plan free is not offered on the provider", planFree, "cf-eu30", `{}`, "plan free is not available on gcp in platform region cf-eu30"},
		"FreeUnknown":   {"an unknown digit is an error", planFree, "cf-eu90", `{}`, "plan free is not available on an unknown provider in platform region cf-eu90"},
		"FreeRegion":    {"the region belongs to another provider", planFree, "cf-eu10", `{"region":"westeurope"}`, `region: "westeurope" is not a region of AWS`},
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

// TestLimitedMachines checks the zones and the errors for a machine type that only some zones and regions offer.
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
		"Fewer":     {"the default zones are those that have the machine type", `{"machineType":"m5.xlarge"}`, []string{"eu-central-1a", "eu-central-1b"}, ""},
		"Other":     {"other machine types are not restricted", `{"machineType":"m5.2xlarge"}`, []string{"eu-central-1a", "eu-central-1b", "eu-central-1c"}, ""},
		"Zone":      {"a zone without the machine type is rejected", `{"machineType":"m5.xlarge","zones":["eu-central-1c"]}`, nil, "zones: zone \"eu-central-1c\" is not available for m5.xlarge in eu-central-1; the available zones are eu-central-1a, eu-central-1b"},
		"NotInThat": {"the error names the regions with the machine type", `{"machineType":"m5.xlarge","region":"eu-west-1"}`, nil, "machineType: m5.xlarge is not available in eu-west-1, only in eu-central-1, us-east-1"},
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

	instance := orderedAs(made(), `{}`)
	instance.Region = "eu-central-1"

	_, err = aws.Update(instance, json.RawMessage(`{"machineType":"m5.xlarge"}`))
	if text := failure.Of(err).Text; !strings.Contains(text, `zone "eu-central-1c" is not available for m5.xlarge in eu-central-1`) {
		t.Errorf("update to a machine type that is not available in a zone of the cluster: %v", err)
	}
}
