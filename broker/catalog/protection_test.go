package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker/catalog"
)

// TestDeletionProtectionOfPlans checks whether a plan protects its instances by default. The plans that come with the broker do not.
func TestDeletionProtectionOfPlans(t *testing.T) {
	t.Parallel()

	for id, name := range map[string]string{
		planAWS: "aws", planAzure: "azure", planGCP: "gcp", planTrial: "trial", planAzureLite: "azure_lite", planConvergedCloud: "sap-converged-cloud",
		planFree: "free", planOwnCluster: "own_cluster", planPreview: "preview",
	} {
		if plan(t, id).DeletionProtection {
			t.Errorf("plan %s protects its instances", name)
		}
	}

	aws := string(file(t, "plans/aws.yaml"))

	cases := map[string]struct {
		reason     string
		plan       string
		parameters string
		want       bool
		wrong      string
	}{
		"Off":         {"the default without the field", aws, `{}`, false, ""},
		"OffAndOn":    {"the order decides", aws, `{"deletionProtection":true}`, true, ""},
		"On":          {"the default of the plan", aws + "deletionProtection: true\n", `{}`, true, ""},
		"OnAndOff":    {"the order decides", aws + "deletionProtection: true\n", `{"deletionProtection":false}`, false, ""},
		"NoParameter": {"only operators decide", strings.ReplaceAll(aws, "  - deletionProtection\n", "") + "deletionProtection: true\n", `{}`, true, ""},
		"Rejected": {
			"only operators decide", strings.ReplaceAll(aws, "  - deletionProtection\n", "") + "deletionProtection: true\n",
			`{"deletionProtection":false}`, false, "deletionProtection: the plan has no such parameter",
		},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			read, err := catalog.Load(shipped(t, map[string]string{"plans/aws.yaml": test.plan}), options())
			if err != nil {
				t.Fatal(err)
			}

			found, err := read.Plan(serviceID, planAWS)
			if err != nil {
				t.Fatal(err)
			}

			got, violations := found.Resolve(order{InstanceID: "0f5b2c7e-0000-4000-8000-000000000001", Parameters: json.RawMessage(test.parameters)}.instance())

			switch {
			case test.wrong != "":
				if len(violations) == 0 || !strings.Contains(violations.Err().Error(), test.wrong) {
					t.Errorf("%s: got %v", test.reason, violations)
				}
			case len(violations) > 0 || got.DeletionProtection != test.want:
				t.Errorf("%s: got %t, %v", test.reason, got.DeletionProtection, violations)
			}
		})
	}
}
