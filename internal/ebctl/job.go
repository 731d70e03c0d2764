package ebctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newJobListCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   listCommand,
		Short: "List the jobs with the results of their newest runs",
		Args:  arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) error {
			list, err := client.ListJobs(ctx)
			if err != nil {
				return fmt.Errorf("listing the jobs: %w", err)
			}

			table := output.Rows{Head: []string{"JOB", "EVERY", "LIMIT", "LAST RUN", "RESULT", "DESCRIPTION"}, WideColumns: 1, IDs: []string{}}

			for _, job := range list.Data {
				limit, last := "none", "never"
				if job.Limit > 0 {
					limit = strconv.Itoa(job.Limit)
				}

				if !job.LastRun.StartedAt.IsZero() {
					last = session.age(job.LastRun.StartedAt) + " ago"
				}

				every := job.Every
				if job.Daily != "" {
					every = job.Daily + " UTC"
				}

				table.Add(job.Name, job.Name, every, limit, last, resultText(job.Items, job.LastRun), job.Description)
			}

			return session.print(list, table)
		}),
	}
}

func newJobRunCommand(session *session) *cobra.Command {
	var order operatorapi.JobOrder

	command := &cobra.Command{
		Use:   "run JOB",
		Short: "Run a job now, or show what it would do",
		Long: "Run a job now, or show what it would do.\n\n" +
			"If more items are due than the job's limit allows, the run does not change anything. List the items with --dry-run, and then confirm their number with " +
			"--confirm." + helpAudited,
		Example: "  ebctl job run expiry --dry-run\n" +
			"  ebctl job run expiry --confirm 312 --reason \"the trials of the summit\"",
		Args: arguments("JOB"),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			if order.Confirm < 0 {
				return usage("--confirm must not be negative")
			}

			run, err := client.RunJob(ctx, args[0], order)
			if err != nil {
				return fmt.Errorf("running the job %s: %w", args[0], err)
			}

			fields := output.Fields{
				{Name: "Job", Value: args[0]},
				{Name: "Result", Value: resultText("items", run)},
				{Name: "Items", Value: idsText("", run.Items, run.Due)},
				{Name: "Errors", Value: strings.Join(run.Errors, "; ")},
			}
			if order.DryRun {
				fields[1] = output.Field{Name: "Due", Value: strconv.Itoa(run.Due)}
				fields = append(fields,
					output.Field{Name: "Protected", Value: strconv.Itoa(run.Protected) + " of them" + idsText(": ", run.ProtectedItems, run.Protected)},
					output.Field{Name: "Protection", Value: run.Protection},
				)
			}

			if err := session.print(run, output.WithID{ID: args[0], Text: fields}); err != nil {
				return err
			}

			if len(run.Errors) > 0 {
				return fmt.Errorf("job %s ran with errors", args[0])
			}

			return nil
		}),
	}

	command.Flags().BoolVar(&order.DryRun, "dry-run", false, "only show the due items, and which of them belong to protected instances")
	command.Flags().IntVar(&order.Confirm, "confirm", 0, "how many items the run may change, if more items are due than the job's limit allows")
	addReason(command, &order.Reason, &order.DryRun, "the timelines, the audit log and the broker's log")

	return command
}

// resultText describes the result of a run, such as "2 of 3 instances changed, 1 failed".
func resultText(items string, run operatorapi.JobRun) string {
	switch {
	case run.StartedAt.IsZero():
		return ""
	case run.Held:
		return fmt.Sprintf("held: %d %s are due; confirm their number with --confirm", run.Due, items)
	case run.Due == 0 && len(run.Errors) > 0:
		return "failed: " + run.Errors[0]
	case run.Due == 0:
		return "nothing was due"
	}

	text := fmt.Sprintf("%d of %d %s changed", run.Changed, run.Due, items)
	if run.Failed > 0 {
		text += fmt.Sprintf(", %d failed", run.Failed)
	}

	if run.Left > 0 {
		text += fmt.Sprintf(", %d left for the next run", run.Left)
	}

	if run.Failed == 0 && len(run.Errors) > 0 { // the items could not be read or completed
		text += "; error: " + run.Errors[0]
	}

	return text
}

// idsText returns the prefix and the IDs, or an empty string if ids is empty. all is the total number of IDs, of which the
// response contains only the first ones.
func idsText(prefix string, ids []string, all int) string {
	if len(ids) == 0 {
		return ""
	}

	text := prefix + strings.Join(ids, ", ")
	if more := all - len(ids); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return text
}
