package catalog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
)

func TestETagFollowsTheContent(t *testing.T) {
	t.Parallel()

	first := load(t).Published()

	second, err := catalog.Load(shipped(t, nil), options())
	if err != nil {
		t.Fatal(err)
	}

	if again := second.Published(); again.ETag != first.ETag || string(again.Body) != string(first.Body) {
		t.Error("the same files result in a different catalog after a restart")
	}

	changed := options()
	changed.OperationTimeout *= 2

	other, err := catalog.Load(shipped(t, nil), changed)
	if err != nil {
		t.Fatal(err)
	}

	if other.Published().ETag == first.ETag {
		t.Error("a different catalog has the same ETag")
	}
}

func TestLoadReportsEveryError(t *testing.T) {
	t.Parallel()

	_, err := catalog.Load(shipped(t, map[string]string{
		"catalog.yaml": strings.Replace(string(file(t, "catalog.yaml")), "imageUrl: \"data:", "imageUrl: \"ftp:", 1),
		"plans/aws.yaml": `{id: nonsense, name: a/w/s, parameters: [name, wishes], updates: [administrators], required: [region], purpose: fun, maintenanceWindow: {timeBegin: "22:00"}, nodes: {min: 3, max: 2},
			offers: [{provider: aws, defaultRegion: atlantis, regions: [eu-central-1, utopia], machines: [m9.huge]}]}`,
		"plans/trial.yaml": `{id: 4deee563-e5ec-4731-b9b1-53b42d855f0c, name: trial, displayName: Trial, description: To try,
			purpose: evaluation, zonesCount: 1, nodes: {min: 1, max: 1}, volume: {size: 80},
			maintenance: {version: "1.0", description: Something}, areas: {default: mars, platformRegions: {cf-us10: us}},
			offers: [{provider: acme, areas: {europe: here}, machines: [x]}, {provider: gcp, areas: {europe: x}, machines: [n2-standard-2]}]}`,
	}), catalog.Options{KubernetesVersion: "latest"})
	if err == nil {
		t.Fatal("want errors, got none")
	}

	for _, want := range []string{
		`APP_KUBERNETES_VERSION: "latest" does not have the form 1.34 or 1.34.2`,
		`APP_OPERATION_TIMEOUT: 0s is not positive`,
		`service: imageUrl must be an https address or a data URI of an image`,
		`plan a/w/s: ID "nonsense" is not a GUID`,
		`plan a/w/s: name "a/w/s" may contain only letters, digits, dots, dashes and underscores`,
		`plan a/w/s: description is missing`,
		`plan a/w/s: maintenance version "" is not a semantic version`,
		`plan a/w/s: purpose "fun" is not one of`,
		`plan a/w/s: the name "a/w/s" differs from the file name plans/aws.yaml`,
		`plan a/w/s: parameter "wishes" does not exist`,
		`plan a/w/s: parameter "administrators" is in updates, but not in parameters`,
		`plan a/w/s: parameter "region" is in required, but not in parameters`,
		`plan a/w/s: nodes need 0 < min <= max`,
		`plan a/w/s: maintenanceWindow: `,
		`plan a/w/s on aws: a volume needs both a size`,
		`plan a/w/s on aws: the provider has no machine type "m9.huge"`,
		`plan a/w/s on aws: the provider has no region "utopia"`,
		`plan a/w/s on aws: the default region "atlantis" is not offered`,
		`plan trial: ID "4deee563-e5ec-4731-b9b1-53b42d855f0c" is used twice`,
		`plan trial: maintenance version "1.0" is not a semantic version`,
		`plan trial: plans with several providers need either the provider parameter or providerByPlatform`,
		`plan trial: the default area "mars" has no offer`,
		`plan trial: the area "us" of platform region cf-us10 has no offer`,
		`plan trial on acme: the provider does not exist`,
		`plan trial on gcp: the provider has no region "x", which area europe uses`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %s:\n%v", want, err)
		}
	}
}

func TestLoadRejectsUnknownFieldsAndMissingFiles(t *testing.T) {
	t.Parallel()

	_, err := catalog.Load(shipped(t, map[string]string{
		"catalog.yaml":       "{plans: [aws, nowhere]}",
		"plans/aws.yaml":     "{nickname: aws}",
		"providers/aws.yaml": "[]",
	}), options())
	for _, want := range []string{"nickname", "plans/nowhere.yaml", "providers/aws.yaml"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %s: %v", want, err)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason      string
		service     string
		plan        string
		wantVersion string
		wantErr     string
	}{
		"Known":          {reason: "the catalog contains both IDs", service: serviceID, plan: planAWS, wantVersion: "1.0.0"},
		"UnknownService": {reason: "the service is checked first", service: planAWS, plan: planAWS, wantErr: `service_id "` + planAWS + `" is not in the catalog`},
		"UnknownPlan":    {reason: "the plan must belong to the service", service: serviceID, plan: serviceID, wantErr: `plan_id "` + serviceID + `" is not a plan of service kymaruntime`},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			found, err := load(t).Plan(test.service, test.plan)

			var version, message string
			if err == nil {
				version = found.MaintenanceVersion()
			} else {
				message = err.Error()
			}

			if diff := cmp.Diff([]string{test.wantVersion, test.wantErr}, []string{version, message}); diff != "" {
				t.Errorf("\n%s\nversion and error: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

// TestMaintenanceWindowOfAPlan checks that the maintenance window in a plan's file takes precedence over the window of an
// instance's Shoot.
func TestMaintenanceWindowOfAPlan(t *testing.T) {
	t.Parallel()

	const aws = "361c511f-f939-4621-b228-d0fb79a1fe15"

	changed, err := catalog.Load(shipped(t, map[string]string{
		"plans/aws.yaml": string(file(t, "plans/aws.yaml")) + "\nmaintenanceWindow: {days: [Sat], timeBegin: 040000+0000, timeEnd: 050000+0000}\n",
	}), options())
	if err != nil {
		t.Fatal(err)
	}

	shoot := fleet.WindowTimes{Begin: "220000+0000", End: "230000+0000"}

	for id, want := range map[string]string{aws: "Sat 04:00:00-05:00:00 +00:00", "another plan": "daily 22:00:00-23:00:00 +00:00"} {
		if window, err := changed.Window(fleet.Candidate{}, id, shoot); err != nil || window.String() != want {
			t.Errorf("%s: got %s, %v, want %s", id, window, err, want)
		}
	}
}
