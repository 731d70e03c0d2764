package ebctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

const helpAudited = "\n\nIt needs the role operator. Your name and the reason are kept in the operation's timeline and in the broker's log."

// interventionError is what went wrong with an intervention.
type interventionError struct {
	verb, operationID string
	cause             error
}

// Error returns what was to be done with which operation, and why it was not.
func (e *interventionError) Error() string {
	return fmt.Sprintf("%s of operation %s: %v", e.verb, e.operationID, e.cause)
}

// Unwrap returns the cause.
func (e *interventionError) Unwrap() error { return e.cause }

// intervention is a command that has something done about an operation.
type intervention struct {
	operatorapi.Intervention

	verb    string
	waiting waiting
}

func newOperationCancelCommand(session *session) *cobra.Command {
	return newInterventionCommand(session, &intervention{verb: brokerclient.Cancel}, cobra.Command{
		Short: "Have an operation end before its next step",
		Long: "Have an operation end before its next step; one that is pending ends at once.\n\n" +
			"What it has made stays. 'ebctl operation retry' goes on with it, 'ebctl instance delete' removes it." + helpAudited,
	})
}

func newOperationRetryCommand(session *session) *cobra.Command {
	intervention := &intervention{verb: brokerclient.Retry}
	command := newInterventionCommand(session, intervention, cobra.Command{
		Short: "Retry an operation that failed or was canceled",
		Long: "Retry an operation that failed or was canceled.\n\n" +
			"That is a new operation, whose id is shown. It goes on with what the former one has finished." + helpAudited,
	})
	command.Flags().StringVar(&intervention.Step, "skip", "",
		"the step at which it failed, to be left out; 'ebctl operation explain' says whether that may be")
	completeBy(command, "skip", session.completeStep)

	return command
}

func newOperationSkipCommand(session *session) *cobra.Command {
	intervention := &intervention{verb: brokerclient.Skip}
	command := newInterventionCommand(session, intervention, cobra.Command{
		Short: "Leave out the step at which an operation is stuck",
		Long: "Leave out the step at which an operation is stuck.\n\n" +
			"Only some steps can be left out: 'ebctl operation explain' says so while an operation is at one. " +
			"What the step would have done has to be done by hand." + helpAudited,
	})
	command.Flags().StringVar(&intervention.Step, "step", "",
		"the step; without it the one at which the operation is. With it nothing is skipped once the operation has gone on")
	completeBy(command, "step", session.completeStep)

	return command
}

func newInterventionCommand(session *session, intervention *intervention, command cobra.Command) *cobra.Command {
	command.Use = intervention.verb + " ID"
	command.Args = arguments("ID")
	command.RunE = func(command *cobra.Command, args []string) error {
		return session.intervene(command.Context(), args[0], *intervention)
	}
	command.Flags().StringVar(&intervention.Reason, "reason", "", "why, for others who look at the operation; has to be given")
	intervention.waiting.addFlags(&command)

	return &command
}

// intervene prints the operation that the intervention leads to: as it is, or as it ended.
func (s *session) intervene(ctx context.Context, id string, wanted intervention) error {
	if strings.TrimSpace(wanted.Reason) == "" {
		return usage("--reason is missing: say why, others will read it")
	}

	client, err := s.client()
	if err != nil {
		return err
	}

	operation, err := client.Intervene(ctx, wanted.verb, id, wanted.Intervention)
	if err != nil {
		return &interventionError{verb: wanted.verb, operationID: id, cause: err}
	}

	var failed error

	if wanted.waiting.wanted {
		// Who stops waiting needs the id: that of a retry is new.
		fmt.Fprintf(s.Err, "Operation %s\n", operation.ID)

		var ended operatorapi.Operation
		if ended, failed = s.wait(ctx, client, operation.ID, wanted.waiting.limit); ended.ID != "" {
			operation = ended
		}

		failed = wanted.judge(failed)
	}

	if err := s.print(operation, s.operationText(operation)); err != nil && failed == nil {
		return err
	}

	return failed
}

// judge returns the error of a wait, unless the operation came to the end that was wanted.
func (i intervention) judge(err error) error {
	var ended *follow.EndedError
	if i.verb == brokerclient.Cancel && errors.As(err, &ended) && process.State(ended.Operation.State) == process.Canceled {
		return nil
	}

	return err
}

// completeStep offers the step at which the operation is, if it may be left out.
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
