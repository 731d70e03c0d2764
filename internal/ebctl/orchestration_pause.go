package ebctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newOrchestrationExplainCommand(session *session) *cobra.Command {
	return session.onOrchestration(&cobra.Command{
		Use:   "explain ORCHESTRATION",
		Short: "Explain what an orchestration does, why it waits, and how to continue",
	}, arguments("ORCHESTRATION"), func(ctx context.Context, client *brokerclient.Client, id string, _ []string) error {
		found, err := client.GetOrchestration(ctx, id)
		if err != nil {
			return fmt.Errorf("reading orchestration %s: %w", id, err)
		}

		texts := paragraphs{orchestrationText(found, session.Clock.Now())}
		if len(found.Explanation) > 0 {
			texts = append(texts, output.Plain(strings.Join(found.Explanation, "\n")))
		}

		return session.print(found, output.WithID{ID: id, Text: texts})
	})
}

func newOrchestrationPauseCommand(session *session) *cobra.Command {
	return session.changeOrchestration(&cobra.Command{
		Use:   "pause ORCHESTRATION",
		Short: "Pause an orchestration until it is resumed",
		Long: "Pause an orchestration until it is resumed: no further upgrades start. Those in progress run to completion.\n\n" +
			"The command needs the operator role. The audit log records your name.",
	}, "pausing", (*brokerclient.Client).PauseOrchestration)
}

func newOrchestrationResumeCommand(session *session) *cobra.Command {
	return session.changeOrchestration(&cobra.Command{
		Use:   "resume ORCHESTRATION",
		Short: "Continue an orchestration that is paused or gated",
		Long: "Continue an orchestration that is paused, or that the failure gate has stopped. In the latter case, the gate then counts only new failures.\n\n" +
			"The command needs the operator role. The audit log records your name.",
	}, "resuming", (*brokerclient.Client).ResumeOrchestration)
}

// changeOrchestration completes the command: it calls change for the given orchestration, and then prints the orchestration. If
// change fails, the error message starts with doing, such as "resuming".
func (s *session) changeOrchestration(command *cobra.Command, doing string,
	change func(*brokerclient.Client, context.Context, string) (operatorapi.AcceptedOrchestration, error),
) *cobra.Command {
	return s.onOrchestration(command, arguments("ORCHESTRATION"), func(ctx context.Context, client *brokerclient.Client, id string, _ []string) error {
		if _, err := change(client, ctx, id); err != nil {
			return fmt.Errorf("%s orchestration %s: %w", doing, id, err)
		}

		return s.printOrchestration(ctx, client, id)
	})
}
