package ebctl

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newInstanceListCommand(session *session) *cobra.Command {
	return newRuntimesCommand(session, "List instances, the newest first", session.runtimesText)
}

// newRuntimesCommand lists runtimes, which are instances with their clusters, as the text shows them.
func newRuntimesCommand(session *session, short string, text func(operatorapi.RuntimeList) output.Text) *cobra.Command {
	var (
		filter   brokerclient.RuntimeFilter
		allPages bool
	)

	command := &cobra.Command{
		Use:   "list",
		Short: short,
		Args:  arguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			list, err := session.runtimes(command.Context(), filter, allPages)
			if err != nil {
				return fmt.Errorf("listing instances: %w", err)
			}

			session.noteMore(list.Page)

			return session.print(list, text(list))
		},
	}

	flags := command.Flags()
	flags.StringVar(&filter.Account, "account", "", "only those of the global account")
	flags.StringVar(&filter.SubAccount, "subaccount", "", "only those of the subaccount")
	flags.StringVar(&filter.Region, "region", "", "only those of the provider's or the platform's region")
	flags.StringVar(&filter.Plan, "plan", "", "only those of the plan, by its name or id")
	flags.StringVar(&filter.State, "state", "", "only those in the state: "+strings.Join(runtimeStates(), ", "))
	addAllPages(command, &allPages)
	addTotal(command, &filter.Total)

	completeBy(command, "plan", session.completePlan)
	complete(command, "state", runtimeStates()...)

	return command
}

func runtimeStates() []string {
	var names []string

	for _, state := range []operatorapi.RuntimeState{
		operatorapi.RuntimeProvisioning, operatorapi.RuntimeSucceeded, operatorapi.RuntimeFailed, operatorapi.RuntimeUpdating,
		operatorapi.RuntimeSuspending, operatorapi.RuntimeSuspended, operatorapi.RuntimeResuming, operatorapi.RuntimeDeprovisioning,
	} {
		names = append(names, string(state))
	}

	return names
}

func (s *session) runtimes(ctx context.Context, filter brokerclient.RuntimeFilter, allPages bool) (operatorapi.RuntimeList, error) {
	client, err := s.client()
	if err != nil {
		return operatorapi.RuntimeList{}, err
	}

	if !allPages {
		return client.Runtimes(ctx, filter)
	}

	data, err := collect(client.AllRuntimes(ctx, filter))

	return operatorapi.RuntimeList{Data: data, Page: pageOfAll(len(data), filter.Total)}, err
}

func (s *session) runtimesText(list operatorapi.RuntimeList) output.Text {
	rows := output.Rows{
		Head: []string{"NAME", "INSTANCE", "PLAN", "REGION", "STATE", "AGE"},
		None: "There are no such instances.",
	}

	for _, runtime := range list.Data {
		rows.Rows = append(rows.Rows, []string{
			runtime.Name, runtime.InstanceID, runtime.ServicePlanName, runtime.Region,
			string(runtime.Status.State), s.age(runtime.Status.CreatedAt),
		})
	}

	return rows
}

func addTotal(command *cobra.Command, total *bool) {
	command.Flags().BoolVar(total, "total", false, "tell how many there are on all pages")
}

// pageOfAll is the page that holds everything.
func pageOfAll(count int, total bool) operatorapi.Page {
	if !total {
		return operatorapi.Page{Count: count}
	}

	return operatorapi.Page{Count: count, TotalCount: &count}
}

func addAllPages(command *cobra.Command, allPages *bool) {
	command.Flags().BoolVar(allPages, "all-pages", false, "list them all, not only the first page")
}

// noteMore tells what is not on the page: how many there are, if that was asked for, and that the list does not end here.
func (s *session) noteMore(page operatorapi.Page) {
	if page.TotalCount != nil {
		fmt.Fprintf(s.Err, "There are %d in all.\n", *page.TotalCount)
	}

	if page.Cursor != "" {
		fmt.Fprintf(s.Err, "The list goes on after these %d: see them all with --all-pages.\n", page.Count)
	}
}

// collect returns all entries, or those before the first error with it.
func collect[T any](entries iter.Seq2[T, error]) ([]T, error) {
	collected := []T{}

	for entry, err := range entries {
		if err != nil {
			return collected, err
		}

		collected = append(collected, entry)
	}

	return collected, nil
}
