package ebctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

func newOperationListCommand(session *session) *cobra.Command {
	var (
		filter   brokerclient.OperationFilter
		allPages bool
	)

	command := &cobra.Command{
		Use:   "list",
		Short: "List operations, the newest first",
		Args:  arguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			list, err := session.operations(command.Context(), filter, allPages)
			if err != nil {
				return fmt.Errorf("listing operations: %w", err)
			}

			session.noteMore(list.Page)

			return session.print(list, session.operationsText(list))
		},
	}

	flags := command.Flags()
	flags.StringVar(&filter.InstanceID, "instance", "", "only those of the instance, by its id")
	flags.StringVar(&filter.Kind, "kind", "", "only those of the kind, such as provision or deprovision")
	flags.StringVar(&filter.State, "state", "", `only those in the state, such as "in progress" or failed`)
	addAllPages(command, &allPages)
	addTotal(command, &filter.Total)

	complete(command, "state",
		string(process.Pending), string(process.InProgress), string(process.Canceling),
		string(process.Succeeded), string(process.Failed), string(process.Canceled))

	return command
}

func (s *session) operations(ctx context.Context, filter brokerclient.OperationFilter, allPages bool,
) (operatorapi.OperationList, error) {
	client, err := s.client()
	if err != nil {
		return operatorapi.OperationList{}, err
	}

	if !allPages {
		return client.Operations(ctx, filter)
	}

	data, err := collect(client.AllOperations(ctx, filter))

	return operatorapi.OperationList{Data: data, Page: pageOfAll(len(data), filter.Total)}, err
}

func (s *session) operationsText(list operatorapi.OperationList) output.Text {
	rows := output.Rows{
		Head: []string{"OPERATION", "KIND", "STATE", "STAGE", "STEP", "INSTANCE", "AGE"},
		None: "There are no such operations.",
	}

	for _, operation := range list.Data {
		rows.Rows = append(rows.Rows, []string{
			operation.ID, operation.Kind, operation.State, operation.Stage, operation.Step,
			operation.InstanceID, s.age(operation.CreatedAt),
		})
	}

	return rows
}
