package ebctl

import (
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/explain"
)

func newOperationExplainCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "explain ID",
		Short: "Tell what an operation does, why it waits, what failed, and what one can do",
		Args:  arguments("ID"),
		RunE: func(command *cobra.Command, args []string) error {
			operation, err := session.operation(command.Context(), args[0], waiting{})
			if err != nil {
				return err
			}

			explanation := explain.Of(operation, session.Clock.Now().UTC())

			return session.print(explanation, explanation)
		},
	}
}
