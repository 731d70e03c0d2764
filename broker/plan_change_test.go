package broker_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/resources"
)

const planLarge = "11111111-2222-4333-8444-555555555555"

// withLargePlan adds a plan named large with a different maintenance version. Instances of the aws plan can change to it.
// The plans in onePerAccount are limited to one instance per account.
func withLargePlan(t *testing.T, onePerAccount ...string) func(*broker.Options) {
	t.Helper()

	files := fstest.MapFS{}

	err := fs.WalkDir(resources.Catalog(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := fs.ReadFile(resources.Catalog(), name)
		files[name] = &fstest.MapFile{Data: content}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	aws := string(files["plans/aws.yaml"].Data)
	large := strings.NewReplacer(planAWS, planLarge, "name: aws", "name: large", "version: 1.0.0", "version: 2.0.0", "min: 3", "min: 5", "lowest: 3", "lowest: 5").Replace(aws)
	files["plans/large.yaml"] = &fstest.MapFile{Data: []byte(large)}
	files["plans/aws.yaml"].Data = []byte(aws + "\nbecomesPlans: [large]\n")
	files["catalog.yaml"].Data = []byte(strings.Replace(string(files["catalog.yaml"].Data), "plans: [", "plans: [large, ", 1))

	offer, err := catalog.Load(files, catalog.Options{
		KubernetesVersion: "1.35", OperationTimeout: 24 * time.Hour, OnePerAccount: onePerAccount,
	})
	if err != nil {
		t.Fatal(err)
	}

	return func(options *broker.Options) { options.Catalog = offer }
}

func TestPlanChange(t *testing.T) {
	b := newFixture(t, withLargePlan(t))
	b.provisioned(instanceID)

	b.want("F12: the version of the new plan", b.patch(instanceID, map[string]any{
		"plan_id": planLarge, "maintenance_info": with("version", "1.0.0"),
	}), 422, "MaintenanceInfoConflict")

	fields := map[string]any{"plan_id": planLarge, "maintenance_info": with("version", "2.0.0")}
	operation := b.want("F6: a plan change that the catalog allows", b.patch(instanceID, fields), 202).text("operation")

	if again := b.want("F10: a repeated request", b.patch(instanceID, fields), 202); again.text("operation") != operation {
		b.Errorf("F10: the repeated request got another operation: %s", again.Raw)
	}

	b.want("C4: platforms that send plan_id with every update do not know the new plan yet",
		b.patch(instanceID, map[string]any{"plan_id": planAWS, "parameters": with("autoScalerMax", 9)}), 422, "ConcurrencyError")
	b.want("C4: nor its version", b.patch(instanceID, with("maintenance_info", with("version", "1.0.0"))), 422, "ConcurrencyError")

	if got := b.get(instanceID); got.text("plan_id") != planAWS {
		b.Errorf("a fetch returns the current plan: %s", got.Raw)
	}

	b.succeed(operation)

	if got := b.get(instanceID); got.text("plan_id") != planLarge {
		b.Errorf("E6: the plan after the update: %s", got.Raw)
	}

	if cluster := b.stored(instanceID).Request.Cluster; cluster.AutoScalerMin != 5 {
		b.Errorf("the cluster has at least %d nodes, want the lower bound of the new plan", cluster.AutoScalerMin)
	}

	b.want("F6: the opposite change is not allowed", b.patch(instanceID, with("plan_id", planAWS)), 422, "PlanChangeNotSupported")
	b.want("D12: the initial order still matches", b.put(instanceID, order()), 200)

	rejected := b.want("J1: deletion with the former plan", b.remove(instanceID), 400)
	if text := rejected.text("description"); !strings.Contains(text, "whose plan is large") {
		b.Errorf("a user whose platform missed the end of the update learns the plan: %s", text)
	}
}

// TestPlanChangeMovesOrderedNodes checks that a fetch returns the numbers of nodes that the new plan has made effective.
func TestPlanChangeMovesOrderedNodes(t *testing.T) {
	b := newFixture(t, withLargePlan(t))

	ordered := order(with("parameters", map[string]any{"name": "runtime", "autoScalerMin": 3, "autoScalerMax": 30}))
	b.succeed(b.want("an order", b.put(instanceID, ordered), 202).text("operation"))

	change := map[string]any{"plan_id": planLarge}
	operation := b.want("F6: a plan change without parameters", b.patch(instanceID, change), 202).text("operation")

	if again := b.want("F10: a repeated request", b.patch(instanceID, change), 202); again.text("operation") != operation {
		b.Errorf("F10: the repeated request got another operation: %s", again.Raw)
	}

	b.succeed(operation)

	want := map[string]any{"name": "runtime", "autoScalerMin": 5.0, "autoScalerMax": 30.0}
	if diff := cmp.Diff(want, b.get(instanceID).Body["parameters"]); diff != "" {
		b.Errorf("the lowest minimum of the new plan is 5: -want +got\n%s", diff)
	}

	b.want("F10: a repeated request", b.patch(instanceID, change), 200)
	b.want("D12: the initial order still matches", b.put(instanceID, ordered), 200)
}
