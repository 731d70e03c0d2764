package ebctl

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/ebctl/progress"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// defaultWait is longer than a runtime takes to be created.
const defaultWait = time.Hour

// waiting is whether and for how long a command waits for the end of an operation.
type waiting struct {
	wanted bool
	limit  time.Duration
}

func (w *waiting) addFlags(command *cobra.Command) {
	command.Flags().BoolVar(&w.wanted, "wait", false, "wait for the end of the operation, showing how it goes on")
	command.Flags().DurationVar(&w.limit, "wait-timeout", defaultWait, "how long to wait at most; 0 is for ever")
}

// wait follows the operation to its end. What it shows meanwhile goes to standard error.
func (s *session) wait(ctx context.Context, client *brokerclient.Client, operationID string, limit time.Duration,
) (operatorapi.Operation, error) {
	operation, err := follow.Follower{
		Source: client, Clock: s.Clock, View: s.view(), Interval: s.PollInterval, Limit: limit,
	}.Follow(ctx, operationID)

	return operation, err
}

func (s *session) view() follow.View {
	if _, there := s.Terminal(); !there {
		return progress.NewLines(s.Err)
	}

	return progress.NewLive(s.Err, func() progress.Size {
		size, _ := s.Terminal()

		return size
	})
}

// change is what came of a request to create or to remove an instance.
type change struct {
	InstanceID string `json:"instanceID"`
	// OperationID names the work that the broker began, if there was any.
	OperationID  string        `json:"operationID,omitempty"`
	State        process.State `json:"state"`
	DashboardURL string        `json:"dashboardURL,omitempty"`
}

func newChange(instanceID string, accepted brokerclient.Accepted) change {
	state := process.Succeeded
	if accepted.Operation != "" {
		state = process.InProgress
	}

	return change{
		InstanceID: instanceID, OperationID: accepted.Operation, State: state, DashboardURL: accepted.DashboardURL,
	}
}

// finish waits for the change if that is wanted, and prints what came of it, whatever that is.
func (s *session) finish(ctx context.Context, client *brokerclient.Client, change change, waiting waiting) error {
	var failed error

	if waiting.wanted && change.OperationID != "" {
		// Who stops waiting needs the ids.
		fmt.Fprintf(s.Err, "Instance %s, operation %s\n", change.InstanceID, change.OperationID)

		operation, err := s.wait(ctx, client, change.OperationID, waiting.limit)
		if operation.State != "" {
			change.State = process.State(operation.State)
		}

		failed = err
	}

	err := s.print(change, output.Fields{
		{Name: "Instance", Value: change.InstanceID},
		{Name: "Operation", Value: change.OperationID},
		{Name: "State", Value: string(change.State)},
		{Name: "Dashboard", Value: change.DashboardURL},
	})
	if failed != nil {
		return failed
	}

	return err
}
