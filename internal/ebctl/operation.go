package ebctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/explain"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
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

			return cmp.Or(failed, session.print(operation, session.operationText(operation)))
		},
	}

	addWait(command, &waiting)

	return command
}

func (s *session) operationText(operation operatorapi.Operation) output.Text {
	fields := output.Fields{
		{Name: "Operation", Value: operation.ID},
		{Name: "Kind", Value: operation.Kind},
		{Name: "Instance", Value: operation.InstanceID},
		{Name: "State", Value: string(operation.State)},
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

	fields = append(fields,
		output.Field{Name: "Skipped steps", Value: strings.Join(operation.SkippedSteps, ", ")},
		output.Field{Name: "Created", Value: output.Time(operation.CreatedAt)},
		output.Field{Name: "Started", Value: output.Time(operation.StartedAt)},
		output.Field{Name: "Finished", Value: output.Time(operation.FinishedAt)},
	)

	if removed := operation.TimelineRemovedAt; !removed.IsZero() {
		fields = append(fields, output.Field{Name: "Timeline", Value: "removed " + output.Time(removed)})
	}

	return fields
}

func newOperationExplainCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "explain ID",
		Short: "Explain the state of an operation, its problem and the next steps",
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

const helpAudited = "\n\nThe command needs the role operator. The operation's timeline and the broker's log record your name and the reason."

// interventionError is the failure of an intervention.
type interventionError struct {
	verb, operationID string
	cause             error
}

// Error returns the verb, the operation and the cause.
func (e *interventionError) Error() string {
	return fmt.Sprintf("%s of operation %s: %v", e.verb, e.operationID, e.cause)
}

// Unwrap returns the cause.
func (e *interventionError) Unwrap() error { return e.cause }

// intervention is a command that cancels or retries an operation or skips a step.
type intervention struct {
	operatorapi.Intervention

	verb string
	send func(*brokerclient.Client, context.Context, string, operatorapi.Intervention) (operatorapi.Operation, error)
	// goal is the state of the operation that the intervention intends.
	goal    operatorapi.OperationState
	waiting waiting
}

func newOperationCancelCommand(session *session) *cobra.Command {
	return newInterventionCommand(session, &intervention{
		verb: "cancel", send: (*brokerclient.Client).CancelOperation, goal: operatorapi.OperationStateCanceled,
	}, cobra.Command{
		Short: "Cancel an operation before its next step",
		Long: "Cancel an operation before its next step; a pending one ends at once.\n\n" +
			"What it has created stays. 'ebctl operation retry' continues it, 'ebctl instance delete' removes the remains." + helpAudited,
	})
}

func newOperationRetryCommand(session *session) *cobra.Command {
	intervention := &intervention{verb: "retry", send: (*brokerclient.Client).RetryOperation, goal: operatorapi.OperationStateSucceeded}
	command := newInterventionCommand(session, intervention, cobra.Command{
		Short: "Retry an operation that failed or was canceled",
		Long: "Retry an operation that failed or was canceled.\n\n" +
			"The retry is a new operation, whose ID is shown. It continues where the former one ended." + helpAudited,
	})
	command.Flags().StringVar(&intervention.Step, "skip", "",
		"skip the step at which the operation failed; 'ebctl operation explain' shows whether it is skippable")
	completeBy(command, "skip", session.completeStep)

	return command
}

func newOperationSkipCommand(session *session) *cobra.Command {
	intervention := &intervention{verb: "skip", send: (*brokerclient.Client).SkipStep, goal: operatorapi.OperationStateSucceeded}
	command := newInterventionCommand(session, intervention, cobra.Command{
		Short: "Skip the current step of an operation",
		Long: "Skip the current step of an operation.\n\n" +
			"Only some steps are skippable: 'ebctl operation explain' shows whether the current one is. " +
			"Do the work of the skipped step by hand." + helpAudited,
	})
	command.Flags().StringVar(&intervention.Step, "step", "",
		"the step to skip, by default the current one. With it, nothing is skipped after the operation has finished the step")
	completeBy(command, "step", session.completeStep)

	return command
}

func newInterventionCommand(session *session, intervention *intervention, command cobra.Command) *cobra.Command {
	command.Use = intervention.verb + " ID"
	command.Args = arguments("ID")
	command.RunE = func(command *cobra.Command, args []string) error {
		return session.intervene(command.Context(), args[0], *intervention)
	}
	command.Flags().StringVar(&intervention.Reason, "reason", "", "the reason, for others who look at the operation; required")
	addWait(&command, &intervention.waiting)

	return &command
}

// intervene sends the intervention and prints the resulting operation, after its end if the command waits.
func (s *session) intervene(ctx context.Context, id string, wanted intervention) error {
	if strings.TrimSpace(wanted.Reason) == "" {
		return usage("--reason is missing: give a reason that others will understand")
	}

	client, err := s.client()
	if err != nil {
		return err
	}

	operation, err := wanted.send(client, ctx, id, wanted.Intervention)
	if err != nil {
		return &interventionError{verb: wanted.verb, operationID: id, cause: err}
	}

	var failed error

	if wanted.waiting.wanted {
		// After an interruption, the user needs the ID: a retry has a new one.
		fmt.Fprintf(s.Err, "Operation %s\n", operation.ID)

		var last operatorapi.Operation
		if last, failed = s.wait(ctx, client, operation.ID, wanted.waiting.limit); last.ID != "" {
			operation = last
		}

		// A canceled operation is the goal of a cancel, not an error.
		if ended, is := errors.AsType[*follow.EndedError](failed); is && ended.Operation.State == wanted.goal {
			failed = nil
		}
	}

	return cmp.Or(failed, s.print(operation, s.operationText(operation)))
}

// completeStep offers the current step of the operation if it is skippable.
func (s *session) completeStep(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	operation, err := s.operation(command.Context(), args[0], waiting{})
	if err != nil || !operation.Skippable {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	return []cobra.Completion{operation.Step}, cobra.ShellCompDirectiveNoFileComp
}
