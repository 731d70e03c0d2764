package ebctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/explain"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newOperationGetCommand(session *session) *cobra.Command {
	var waiting waiting

	command := &cobra.Command{
		Use:   "get ID",
		Short: "Show an operation, or wait for its end",
		Args:  arguments("ID"),
		RunE: func(command *cobra.Command, args []string) error {
			operation, failed := session.operation(command.Context(), args[0], waiting)
			if operation.ID == "" {
				return failed
			}

			if err := session.print(operation, session.operationText(operation)); err != nil && failed == nil {
				return err
			}

			return failed
		},
	}

	waiting.addFlags(command)

	return command
}

// operation returns the operation as it is or, if that is wanted, as it ended; also beside an error that tells how it ended.
func (s *session) operation(ctx context.Context, id string, waiting waiting) (operatorapi.Operation, error) {
	client, err := s.client()
	if err != nil {
		return operatorapi.Operation{}, err
	}

	if waiting.wanted {
		return s.wait(ctx, client, id, waiting.limit)
	}

	operation, _, err := client.Operation(ctx, id)
	if err != nil {
		return operatorapi.Operation{}, fmt.Errorf("asking for operation %s: %w", id, err)
	}

	return operation, nil
}

func (s *session) operationText(operation operatorapi.Operation) output.Text {
	fields := output.Fields{
		{Name: "Operation", Value: operation.ID},
		{Name: "Kind", Value: operation.Kind},
		{Name: "Instance", Value: operation.InstanceID},
		{Name: "State", Value: operation.State},
		{Name: "Description", Value: operation.Description},
		{Name: "Problem", Value: explain.ProblemText(operation.Problem)},
		{Name: "Ordered by", Value: operation.OrderedBy},
		{Name: "Retries", Value: operation.PredecessorID},
		{Name: "Finished stages", Value: strings.Join(operation.FinishedStages, ", ")},
	}

	if place := explain.Of(operation, s.Clock.Now()).Place; place != nil {
		fields = append(fields,
			output.Field{Name: "Stage", Value: place.StageText()},
			output.Field{Name: "Step", Value: place.StepText()},
		)
	}

	return append(fields,
		output.Field{Name: "Skipped steps", Value: strings.Join(operation.SkippedSteps, ", ")},
		output.Field{Name: "Created", Value: output.Time(operation.CreatedAt)},
		output.Field{Name: "Started", Value: output.TimeOf(operation.StartedAt)},
		output.Field{Name: "Finished", Value: output.TimeOf(operation.FinishedAt)},
		output.Field{Name: "Timeline", Value: timelineText(operation)},
	)
}

// timelineText tells when the timeline was removed, for the one who looks for it.
func timelineText(operation operatorapi.Operation) string {
	if operation.TimelineRemovedAt == nil {
		return ""
	}

	return "removed " + output.TimeOf(operation.TimelineRemovedAt)
}
