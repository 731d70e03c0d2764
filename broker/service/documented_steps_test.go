package service_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// documentedSteps returns the steps that the requirements list for each process, in their order and as STAGE/STEP. The stage is empty
// for deletions and upgrades, for which the requirements name none.
func documentedSteps() map[string][]string {
	return map[string][]string{
		environment.KindProvision: {
			"start/Starting", "create_runtime/Provision_Initialization", "create_runtime/Resolve_Target_Secret",
			"create_runtime/AVS_Create_Internal_Eval_Step", "create_runtime/EDP_Registration",
			"create_runtime/Overrides_From_Secrets_And_Config_Step", "create_runtime/BTPOperatorOverrides",
			"create_runtime/BusolaMigratorOverrides", "create_runtime/Create_Runtime_Without_Kyma", "check_runtime/Check_Runtime",
			"create_runtime/Get_Kubeconfig", "create_runtime/Inject_BTP_Operator_Credentials", "create_runtime/Create_Cluster_Configuration",
			"check_kyma/Check_Cluster_Configuration", "create_kyma_resource/Apply_Kyma", "post_actions/AVS_Create_External_Eval_Step",
			"post_actions/AVS_Tags",
		},
		environment.KindDeprovision: {
			"/Init_Step", "/BTPOperator_Cleanup", "/De-provision_AVS_Evaluations", "/EDP_Deregistration", "/IAS_Deregistration",
			"/Deregister_Cluster", "/Check_Cluster_Deregistration", "/Remove_Runtime", "/Check_Runtime_Removal", "/Release_Subscription",
			"/Remove_Instance",
		},
		environment.KindUpdate: {
			"cluster/Update_Kyma_Initialization", "cluster/Upgrade_Shoot", "btp-operator/Update_Init_Kyma_Version",
			"btp-operator/Get_Kubeconfig", "btp-operator/BTPOperatorOverrides", "btp-operator/Apply_Reconciler_Configuration",
			"btp-operator-check/CheckReconcilerState", "check/Check_Runtime",
		},
		environment.KindUpgradeKyma: {
			"/Check_Cluster_Configuration", "/Get_Kubeconfig", "/BTPOperatorOverrides", "/Overrides_From_Secrets_And_Config_Step",
			"/BusolaMigratorOverrides", "/Send_Notification", "/Apply_Cluster_Configuration",
		},
		environment.KindUpgradeCluster: {"/Send_Notification", "/Upgrade_Cluster"},
	}
}

// movedStages maps the documented steps that have stages of their own, as ADR 2 explains, to these stages.
func movedStages() map[string]string {
	return map[string]string{
		"create_runtime/Get_Kubeconfig":                  "get_kubeconfig/Get_Kubeconfig",
		"create_runtime/Inject_BTP_Operator_Credentials": "btp_operator/Inject_BTP_Operator_Credentials",
		"create_runtime/Create_Cluster_Configuration":    "create_kyma/Create_Cluster_Configuration",
	}
}

// movedSteps maps the documented steps that have another place in the order, as ADR 44 explains, to the steps that they follow.
func movedSteps() map[string]string {
	return map[string]string{
		"check/Check_Runtime":          "cluster/Upgrade_Shoot",
		"/Check_Cluster_Configuration": "/Apply_Cluster_Configuration",
	}
}

// TestProcessesAreThoseDocumented checks that the processes have the documented steps, under their names, in their stages and in their
// order, except for the recorded deviations.
func TestProcessesAreThoseDocumented(t *testing.T) {
	registered := map[string][]string{}

	for _, process := range service.Processes(service.DefaultConfig(), service.Parts{}) {
		for _, stage := range process.Stages {
			for _, task := range stage.Steps {
				registered[process.Kind] = append(registered[process.Kind], stage.Name+"/"+task.Step.Name(), "/"+task.Step.Name())
			}
		}
	}

	for kind, steps := range documentedSteps() {
		want := slices.Clone(steps)

		for i, step := range want {
			if moved, is := movedStages()[step]; is && kind == environment.KindProvision {
				want[i] = moved
			}
		}

		for _, step := range steps {
			if former, moved := movedSteps()[step]; moved && slices.Contains(steps, former) {
				want = slices.DeleteFunc(want, func(other string) bool { return other == step })
				want = slices.Insert(want, slices.Index(want, former)+1, step)
			}
		}

		got := slices.DeleteFunc(slices.Clone(registered[kind]), func(step string) bool { return !slices.Contains(want, step) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -documented +registered\n%s", kind, diff)
		}
	}
}
