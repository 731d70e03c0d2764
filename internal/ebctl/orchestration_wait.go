package ebctl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/timetext"
)

// orchestrationTimeoutError reports that a wait ended before the orchestration did.
type orchestrationTimeoutError struct {
	id    string
	after time.Duration
}

// Error returns a message with the orchestration and the limit.
func (e *orchestrationTimeoutError) Error() string {
	return fmt.Sprintf("timed out waiting for orchestration %s after %s; the orchestration continues", e.id, e.after)
}

// orchestrationEndedError reports that an orchestration has ended without success, or waits for an operator.
type orchestrationEndedError struct{ orchestration operatorapi.Orchestration }

// Error returns a message with the state and the description of the orchestration.
func (e *orchestrationEndedError) Error() string {
	return fmt.Sprintf("orchestration %s is %s: %s", e.orchestration.OrchestrationID, e.orchestration.State, e.orchestration.Description)
}

// waitForOrchestration waits until the orchestration has ended, or until only an operator can continue it because it is gated or
// still a plan. It shows the progress on standard error and always returns the last known state. If the orchestration did not
// succeed, the error is an orchestrationEndedError. If limit has passed, the error is an orchestrationTimeoutError; a limit of 0
// means no limit. If a request fails with a temporary error, the wait continues.
func (s *session) waitForOrchestration(ctx context.Context, client *brokerclient.Client, id string, limit time.Duration) (operatorapi.Orchestration, error) {
	var (
		last  operatorapi.Orchestration
		start = s.Clock.Now()
		view  = s.orchestrationView()
	)

	for {
		found, err := client.GetOrchestration(ctx, id)

		switch {
		case ctx.Err() != nil:
			return last, fmt.Errorf("stopped waiting for orchestration %s, which continues: %w", id, ctx.Err())
		case err != nil && !follow.Temporary(err):
			return last, fmt.Errorf("reading orchestration %s: %w", id, err)
		case err == nil:
			last = found
		}

		view(last, err)

		switch state := environment.OrchestrationState(last.State); {
		case state == environment.OrchestrationSucceeded:
			return last, nil
		case state.Ended(), state == environment.OrchestrationGated, state == environment.OrchestrationPlanned:
			return last, &orchestrationEndedError{last}
		case limit > 0 && s.Clock.Now().Sub(start) >= limit:
			return last, &orchestrationTimeoutError{id, limit}
		}

		select {
		case <-ctx.Done():
		case <-s.Clock.After(s.PollInterval):
		}
	}
}

// orchestrationView returns a function that shows an orchestration or the error of the last request. On a terminal, it redraws
// bars; elsewhere, it prints a line for each change.
func (s *session) orchestrationView() func(shown operatorapi.Orchestration, err error) {
	if _, found := s.Terminal(); !found {
		last := ""

		return func(shown operatorapi.Orchestration, err error) {
			if line := orchestrationLine(shown, err); line != last {
				last = line

				io.WriteString(s.Err, output.Line(line)+"\n") //nolint:errcheck // the wait does not depend on the view
			}
		}
	}

	screen := follow.NewLive(s.Err, s.size)

	return func(shown operatorapi.Orchestration, err error) {
		screen.Draw(orchestrationFrame(shown, err, s.Clock.Now()))
	}
}

// orchestrationLine returns the state, the percentage and the description, or the error of the last request. It omits the
// expected end, which changes all the time.
func orchestrationLine(shown operatorapi.Orchestration, err error) string {
	switch {
	case err != nil:
		return err.Error() + "; trying again"
	case shown.Percent > 0:
		return fmt.Sprintf("%s, %d %%: %s", shown.State, shown.Percent, shown.Description)
	default:
		return shown.State + ": " + shown.Description
	}
}

// orchestrationFrame returns the lines to draw on a terminal: the state, a progress bar and, if there are several waves, a bar
// for each.
func orchestrationFrame(shown operatorapi.Orchestration, err error, now time.Time) []string {
	lines := []string{"waiting for the first response"}

	if shown.OrchestrationID != "" {
		header := fmt.Sprintf("%s of orchestration %s: %s, %s", shown.Type, shown.OrchestrationID, shown.State, output.Duration(now.Sub(shown.CreatedAt)))
		progress := timetext.Progress(shown.Percent, shown.EstimatedEnd.Sub(now), shown.LatestEnd.Sub(now))

		percent := shown.Percent
		if environment.OrchestrationState(shown.State) == environment.OrchestrationSucceeded {
			percent = 100 //nolint:mnd // percent
		}

		lines = []string{output.Line(header), strings.TrimRight("  "+output.Bar(percent)+" "+progress, " "), "  " + output.Line(shown.Description)}

		if len(shown.Waves) > 1 {
			for _, wave := range shown.Waves {
				lines = append(lines, fmt.Sprintf("  wave %-2d %s %s", wave.Wave, output.Bar(wave.Percent), statsText(wave.OperationStats)))
			}
		}
	}

	if err != nil {
		lines = append(lines, "  ! "+output.Line(err.Error())+"; trying again")
	}

	return lines
}
