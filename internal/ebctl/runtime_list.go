package ebctl

import (
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// newRuntimeListCommand lists what `instance list` does, as operators look at it: whose the runtimes are and where to find them.
func newRuntimeListCommand(session *session) *cobra.Command {
	return newRuntimesCommand(session, "List runtimes with their accounts and clusters, the newest first", session.operatorsText)
}

func (s *session) operatorsText(list operatorapi.RuntimeList) output.Text {
	rows := output.Rows{
		Head: []string{"RUNTIME", "CLUSTER", "ACCOUNT", "SUBACCOUNT", "PLAN", "REGION", "STATE", "INSTANCE", "AGE"},
		None: "There are no such runtimes.",
	}

	for _, runtime := range list.Data {
		rows.Rows = append(rows.Rows, []string{
			runtime.RuntimeID, runtime.ShootName, runtime.GlobalAccountID, runtime.SubAccountID, runtime.ServicePlanName,
			runtime.Region, string(runtime.Status.State), runtime.InstanceID, s.age(runtime.Status.CreatedAt),
		})
	}

	return rows
}
