package ebctl

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
)

// provisionerCommands is the common prefix of all commands for the Provisioner.
const provisionerCommands = "ebctl provisioner"

// newProvisionerCommand returns the group of commands for the Provisioner. The Provisioner serves the same operator API as the
// broker, with runtimes as instances. Most commands are therefore the commands for the broker, in a session with different
// settings and messages.
func newProvisionerCommand(session *session) *cobra.Command {
	provisioner := *session
	provisioner.provisioner = true

	command := group("provisioner", "Show the runtimes of the Provisioner, and intervene in its operations",
		newProvisionerLoginCommand(&provisioner),
		group("runtime", "Show the runtimes of the Provisioner",
			newProvisionerRuntimeListCommand(&provisioner),
			newProvisionerRuntimeGetCommand(&provisioner),
		),
		group("operation", "Show, explain, cancel and retry operations of the Provisioner, and skip their steps",
			newOperationListCommand(&provisioner),
			newOperationGetCommand(&provisioner),
			newOperationExplainCommand(&provisioner),
			newOperationCancelCommand(&provisioner),
			newOperationRetryCommand(&provisioner),
			newOperationSkipCommand(&provisioner),
		),
		group("process", "Show the steps of the Provisioner's operations",
			newProcessListCommand(&provisioner), newProcessShowCommand(&provisioner),
		),
		group("audit", "Show, verify and export the audit log of the Provisioner",
			newAuditListCommand(&provisioner),
			newAuditGetCommand(&provisioner),
			newAuditVerifyCommand(&provisioner),
			newAuditExportCommand(&provisioner),
		),
		group("account", "Erase account data from the Provisioner's database",
			newAccountEraseCommand(&provisioner),
		),
		newReconcileCommand(&provisioner), newTopCommand(&provisioner),
	)
	command.Long = "Show the runtimes of the Provisioner, and intervene in its operations.\n\n" +
		"Specify a runtime by its ID or by the name of its Shoot. The address and the credentials come from --address, --username, --password and " +
		"--token, then from EBCTL_PROVISIONER_ADDRESS, EBCTL_PROVISIONER_USERNAME, EBCTL_PROVISIONER_PASSWORD and EBCTL_PROVISIONER_TOKEN, then " +
		"from the context, in which 'ebctl provisioner login' stores them. The default address is " + DefaultProvisionerAddress + "."

	return command
}

// provisionerKinds returns the kinds of the Provisioner's operations, as suggestions for the --kind flag.
func provisionerKinds() []string {
	return []string{
		"Provision", "ProvisionNoInstall", "Upgrade", "UpgradeRuntime", "RollBack", "UpgradeShoot", "Hibernate", "WakeUp", "ReconnectRuntime",
		"Deprovision", "DeprovisionNoInstall",
	}
}

func newProvisionerRuntimeListCommand(session *session) *cobra.Command {
	return newRuntimesCommand(session, "List runtimes of the Provisioner, newest first", output.Rows{
		Head:        []string{"SHOOT", "RUNTIME", "ACCOUNT", "PROVIDER", "REGION", headState, "AGE", "LAST OPERATION", "PROBLEM"},
		WideColumns: 2, // the last operation and its problem
		None:        "No runtimes found.",
	}, func(runtime operatorapi.Runtime) []string {
		last := runtime.Status.LastOperation

		return []string{
			runtime.ShootName, runtime.RuntimeID, runtime.GlobalAccountID, runtime.Provider, runtime.Region,
			string(runtime.Status.State), session.age(runtime.Status.CreatedAt),
			strings.TrimSpace(last.Kind + " " + last.ID), explain.ProblemText(last.Problem),
		}
	})
}

// newProvisionerRuntimeGetCommand returns the command that shows a runtime with its order. If its newest operation has failed or
// is delayed, the command also shows the problem.
func newProvisionerRuntimeGetCommand(session *session) *cobra.Command {
	return session.newGetCommand(&cobra.Command{
		Use:   "get ID_OR_NAME",
		Short: "Show a runtime with its order and the problem of its newest operation",
		Long: "Show a runtime with its order and the problem of its newest operation.\n\n" +
			"ID_OR_NAME is the ID of the runtime or the name of its Shoot. Use the ID for a deleted runtime.",
	}, "order", session.runtimeFields)
}

func (s *session) runtimeFields(shown operatorapi.Runtime) output.Fields {
	status := shown.Status
	fields := output.Fields{
		{Name: "Shoot", Value: shown.ShootName},
		{Name: "Runtime", Value: shown.RuntimeID},
		{Name: "State", Value: string(status.State)},
		{Name: "Region", Value: strings.TrimSpace(shown.Provider + " " + shown.Region)},
		{Name: "Account", Value: shown.GlobalAccountID},
		{Name: "Subaccount", Value: shown.SubAccountID},
		{Name: "Created", Value: output.Time(status.CreatedAt)},
		{Name: "Deleted", Value: output.Time(status.DeletedAt)},
	}

	fields = append(fields, lastOperationFields(status.LastOperation, s.explanation(status.LastOperation), provisionerCommands)...)

	return append(fields, parameterFields("Order", shown.Resolved)...)
}

// lastOperationFields describes the newest operation of an instance or runtime. It returns nil if there is none. commands is the
// prefix of the command that the last line suggests: "ebctl" or provisionerCommands.
func lastOperationFields(last operatorapi.Operation, explanation explain.Explanation, commands string) output.Fields {
	if last.ID == "" {
		return nil
	}

	fields := output.Fields{
		{Name: "Last operation", Value: fmt.Sprintf("%s %s, %s", last.Kind, last.ID, last.State)},
		{Name: "", Value: last.Description},
		{Name: "Problem", Value: explain.ProblemText(last.Problem)},
		{Name: "System", Value: explanation.SystemText()},
		{Name: "Continues", Value: explanation.Continues()},
	}

	if last.Problem.Message != "" {
		fields = append(fields, output.Field{Name: "Next steps", Value: commands + " operation explain " + last.ID})
	}

	return fields
}
