package deprovisioning

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// unreachableIAS fails the test when it is called.
type unreachableIAS struct{ *testing.T }

func (u unreachableIAS) Remove(context.Context, string) error {
	u.Error("a step called IAS")

	return nil
}

// TestCleanupSparesARuntimeInUse runs the steps of a cleanup, each on its own. The steps that remove something must not call a
// system if an instance uses the runtime, and must wait while one may get it.
func TestCleanupSparesARuntimeInUse(t *testing.T) {
	const runtimeID, last = "runtime-of-" + provisioning, "Remove_Instance"

	recorded := func() *stepstest.Objects {
		objects := stepstest.New()
		for system, kind := range map[string]string{
			environment.SystemAvS: environment.KindInternalEvaluation, environment.SystemEDP: environment.KindDataTenant,
			environment.SystemIAS: environment.KindServiceProvider, environment.SystemReconciler: environment.KindCluster,
			environment.SystemLifecycleManager: environment.KindKymaResource,
		} {
			objects.Records = append(objects.Records, environment.OutsideObject{
				InstanceID: instanceID, System: system, Kind: kind, Key: "key", State: environment.OutsideLeftOver,
			})
		}

		return objects
	}

	all := []string{
		"De-provision_AVS_Evaluations", "EDP_Deregistration", "IAS_Deregistration", "Delete_Kyma_Resource", "Check_Kyma_Resource_Deleted",
		stepDeregister, "Check_Cluster_Deregistration", stepRemoveRuntime, stepCheckRemoval, "Delete_Kubeconfig", last,
	}
	removal := []string{stepRemoveRuntime, last}

	cases := map[string]struct {
		reason    string
		steps     []string
		known     string // the ID of the leftover's runtime
		used      string // the runtime that an instance uses
		undecided bool
		wantWait  time.Duration // of all steps but the last
		wantCalls []string
	}{
		"used":      {"the instance was resumed with its former runtime", all, runtimeID, runtimeID, false, 0, []string{"reused by user"}},
		"found":     {"the ID of the runtime never arrived, and a repeated order returns it", removal, "", runtimeID, false, 0, []string{"provision", "cleaned"}},
		"undecided": {"the instance is being resumed", all, runtimeID, "", true, undecidedInterval, []string{"cleaned"}},
		"other":     {"the instance has another runtime", removal, runtimeID, "runtime-2", false, 0, []string{"deprovision", "cleaned"}},
	}

	for name, c := range cases {
		w := newFixture(environment.Data{})
		w.user, w.used, w.undecided = "user", c.used, c.undecided
		w.orders[provisioning], w.runtimes[provisioning] = true, runtimeID

		objects := recorded()
		cleanup := Cleanup(Options{
			Provisioner: w, Instances: w, Provisionings: w, Waiter: w.waiter(), Runtimes: &fakeRuntimes{},
			IAS: unreachableIAS{t}, Objects: objects, Kind: ours, Limit: time.Hour,
		})

		if names := cleanup.StageNames(); !containsAll(names, all) {
			t.Fatalf("a cleanup has the stages %v, which lack some of %v", names, all)
		}

		for _, stage := range cleanup.Stages {
			if !slices.Contains(c.steps, stage.Name) {
				continue
			}

			data := environment.Data{Instance: withRuntime(c.known), Provisioning: provisioning, Ordered: true, ProvisionerOperationID: "removal"}
			operation := process.NewOperation(process.Record{ID: "cleanup", InstanceID: instanceID, Kind: environment.KindCleanup}, data, began)

			_, wait, err := run(t, stage.Steps[0].Step, operation)
			if err != nil || stage.Name != last && wait != c.wantWait {
				t.Errorf("%s: %s: %s waits for %s, %v", name, c.reason, stage.Name, wait, err)
			}
		}

		if diff := cmp.Diff(c.wantCalls, w.calls); diff != "" || w.recorded != "" {
			t.Errorf("%s: %s: recorded runtime %q, calls, -want +got:\n%s", name, c.reason, w.recorded, diff)
		}

		if objects.Writes > 0 {
			t.Errorf("%s: %s: the records of objects have changed: %+v", name, c.reason, objects.Records)
		}
	}
}

func containsAll(names, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(each string) bool { return !slices.Contains(names, each) })
}
