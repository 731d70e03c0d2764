package ebctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/explaintext"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
)

// newOperationGetCommand returns the command that shows an operation or waits for its end. Without --wait, the command succeeds
// even if the operation has failed.
func newOperationGetCommand(session *session) *cobra.Command {
	var waiting waiting

	command := &cobra.Command{
		Use:               "get ID_OR_NAME",
		Short:             "Show an operation, or wait for its end",
		Long:              session.text("Show an operation, or wait for its end." + helpNamed),
		Args:              arguments("ID_OR_NAME"),
		ValidArgsFunction: session.completeOperation,
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
		{Name: s.title(), Value: instanceText(operation)},
		{Name: "State", Value: string(operation.State)},
		{Name: "Description", Value: operation.Description},
		{Name: "Problem", Value: explain.ProblemText(operation.Problem)},
		{Name: "Ordered by", Value: operation.OrderedBy},
		{Name: "Retries", Value: operation.PredecessorID},
		{Name: "Finished stages", Value: strings.Join(operation.FinishedStages, ", ")},
	}

	if place := s.explanation(operation).Place; place != nil {
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

	return output.WithID{Text: fields, ID: operation.ID}
}

// instanceText returns the name and ID of the operation's instance.
func instanceText(operation operatorapi.Operation) string {
	if operation.InstanceName == "" {
		return operation.InstanceID
	}

	return fmt.Sprintf("%s (%s)", operation.InstanceName, operation.InstanceID)
}

// newOperationExplainCommand returns the command that prints the explain.Explanation of an operation.
func newOperationExplainCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:               "explain ID_OR_NAME",
		Short:             "Explain the state of an operation, its problem and the next steps",
		Long:              session.text("Explain the state of an operation, its problem and the next steps." + helpNamed),
		Args:              arguments("ID_OR_NAME"),
		ValidArgsFunction: session.completeOperation,
		RunE: func(command *cobra.Command, args []string) error {
			operation, err := session.operation(command.Context(), args[0], waiting{})
			if err != nil {
				return err
			}

			explanation := session.explanation(operation)

			return session.print(explanation, output.WithID{ID: operation.ID, Text: explaintext.Text{Explanation: explanation}})
		},
	}
}

const helpNamed = "\n\nID_OR_NAME is the ID of an operation. The ID or name of an instance selects the instance's newest operation."

const helpIntervention = helpNamed +
	"\n\nThe command needs the operator role. The operation's timeline, the audit log and the broker's log record your name and the reason."

const helpAudited = "\n\nThe command needs the operator role. The audit log and the broker's log record your name and the reason."

// interventionError reports that the broker rejected an intervention or did not respond. It contains the ID of the operation for
// the hint.
type interventionError struct {
	doing, operationID string
	cause              error
}

// Error returns the action, the operation and the cause.
func (e *interventionError) Error() string {
	return fmt.Sprintf("%s operation %s: %v", e.doing, e.operationID, e.cause)
}

// Unwrap returns the cause.
func (e *interventionError) Unwrap() error { return e.cause }

// intervention describes a command that cancels or retries an operation, or skips a step.
type intervention struct {
	operatorapi.Intervention

	// question is the confirmation question. It is empty for a retry of one operation, which needs no confirmation.
	question string
	// verb is the name of the command; doing starts its error messages.
	verb, doing string
	// send is the client method that sends the intervention. It returns the changed operation or, for a retry, the new operation.
	send func(*brokerclient.Client, context.Context, string, operatorapi.Intervention) (operatorapi.Operation, error)
	// goal is a final state with which --wait succeeds, in addition to the succeeded state.
	goal    operatorapi.OperationState
	waiting waiting
	bulk    bulkFlags
}

// newOperationCancelCommand returns the command that cancels an operation. With --wait, it succeeds if the operation is canceled,
// and also if the operation succeeds before the cancellation takes effect.
func newOperationCancelCommand(session *session) *cobra.Command {
	return addYes(session, newInterventionCommand(session, &intervention{
		question: "Cancel the operation? Everything that the operation has created will remain.", verb: "cancel", doing: "canceling", send: (*brokerclient.Client).CancelOperation, goal: operatorapi.OperationStateCanceled,
	}, cobra.Command{
		Short: "Cancel an operation before its next step",
		Long: "Cancel an operation before its next step. A pending operation ends immediately.\n\n" +
			"Everything that the operation has created remains. 'ebctl operation retry' continues the operation; " +
			"'ebctl instance delete' deletes the instance." + helpIntervention,
	}))
}

// newOperationRetryCommand returns the command that retries an operation that failed or was canceled. With --wait, it follows the
// new operation that the broker returns.
func newOperationRetryCommand(session *session) *cobra.Command {
	intervention := &intervention{
		verb: "retry", doing: "retrying", send: (*brokerclient.Client).RetryOperation, goal: operatorapi.OperationStateSucceeded,
	}
	command := newInterventionCommand(session, intervention, cobra.Command{
		Short: "Retry an operation that failed or was canceled",
		Long: "Retry an operation that failed or was canceled.\n\n" +
			"The retry is a new operation with a new ID. It starts with the stage in which the previous operation ended, or with an earlier " +
			"stage whose result that stage waits for. Finished stages before it do not run again." + helpIntervention,
	})
	command.Flags().StringVar(&intervention.Step, "skip", "",
		session.text("skip the step at which the operation failed; 'ebctl operation explain' shows whether it is skippable"))
	completeBy(command, "skip", session.completeStep)

	return addYes(session, command)
}

// newOperationSkipCommand returns the command that skips the current step of an operation. --step prevents a race: the operation
// may have reached the next step when the request arrives.
func newOperationSkipCommand(session *session) *cobra.Command {
	intervention := &intervention{
		question: "Skip the step? You must then do its work manually.",
		verb:     "skip", doing: "skipping a step of", send: (*brokerclient.Client).SkipStep, goal: operatorapi.OperationStateSucceeded,
	}
	command := newInterventionCommand(session, intervention, cobra.Command{
		Short: "Skip the current step of an operation",
		Long: "Skip the current step of an operation.\n\n" +
			"Only some steps are skippable: 'ebctl operation explain' shows whether the current one is. " +
			"Do the work of the skipped step manually." + helpIntervention,
	})
	command.Flags().StringVar(&intervention.Step, "step", "",
		session.text("the step to skip, by default the current one; the broker rejects the request if the operation is no longer at this step"))
	completeBy(command, "step", session.completeStep)

	return addYes(session, command)
}

// newInterventionCommand turns a command into one that sends an intervention, with the arguments, help texts and flags that all
// interventions share.
func newInterventionCommand(session *session, intervention *intervention, command cobra.Command) *cobra.Command {
	command.Use = intervention.verb + " ID_OR_NAME | --selector SELECTOR"
	command.Long = session.text(command.Long) + session.helpSelector()
	command.Args = cobra.ArbitraryArgs
	command.ValidArgsFunction = session.completeOperation
	command.RunE = session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
		many, err := intervention.bulk.wanted(args, intervention.waiting)

		switch {
		case err != nil:
			return err
		case many:
			return session.interveneInMany(ctx, client, *intervention, intervention.bulk)
		default:
			return session.intervene(ctx, client, args[0], *intervention)
		}
	})
	command.Flags().StringVar(&intervention.Reason, "reason", "",
		session.text("the reason, for the operation's timeline, the audit log and the broker's log; required"))
	addWait(&command, &intervention.waiting)
	intervention.bulk.add(session, &command)

	return &command
}

// intervene sends the intervention and prints the resulting operation. If the command waits, it first waits for the operation to
// end.
func (s *session) intervene(ctx context.Context, client *brokerclient.Client, idOrName string, wanted intervention) error {
	if err := checkReason(wanted.Reason); err != nil {
		return err
	}

	operation, err := withOperation(ctx, client, idOrName, func(id string) (operatorapi.Operation, error) {
		if err := s.confirmIntervention(ctx, client, id, wanted.question); err != nil {
			return operatorapi.Operation{}, err
		}

		operation, err := wanted.send(client, ctx, id, wanted.Intervention)
		if err != nil {
			return operation, &interventionError{doing: wanted.doing, operationID: id, cause: err}
		}

		return operation, nil
	})
	if err != nil {
		return err
	}

	var failed error

	if wanted.waiting.wanted {
		// A retry is a new operation. Print its ID before the wait, so that a user who presses Ctrl-C can follow the operation
		// later.
		fmt.Fprintf(s.Err, "Operation %s\n", operation.ID)

		var last operatorapi.Operation
		if last, failed = s.wait(ctx, client, operation.ID, wanted.waiting.limit); last.ID != "" {
			operation = last
		}

		// Follow returns an error for a canceled operation, but canceling is the goal of a cancel command.
		if ended, is := errors.AsType[*follow.EndedError](failed); is && ended.Operation.State == wanted.goal {
			failed = nil
		}
	}

	return cmp.Or(failed, s.print(operation, s.operationText(operation)))
}

// confirmIntervention shows the operation and asks the question. It does nothing if the question is empty, --yes is set, or
// standard input is not a terminal.
func (s *session) confirmIntervention(ctx context.Context, client *brokerclient.Client, id, question string) error {
	if question == "" || !s.asks() {
		return nil
	}

	operation, _, err := client.Operation(ctx, id)
	if err != nil {
		return fmt.Errorf("reading operation %s: %w", id, err)
	}

	fmt.Fprintf(s.Err, "Operation %s: %s of %s %s, %s %s\n", operation.ID, operation.Kind, s.noun(), instanceText(operation),
		operation.State, operation.Step)

	return s.confirm(ctx, "%s", question)
}

// completeStep returns the current step of the operation for shell completion, if the step is skippable.
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
