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

func newQuotaListCommand(session *session) *cobra.Command {
	var query operatorapi.ListQuotasParams

	command := &cobra.Command{
		Use:   listCommand,
		Short: "List the quotas with the tenants, plans and regions that have the highest usage",
		Long: "List the quotas with the tenants, plans and regions that have the highest usage.\n\n" +
			"An instance counts until its deletion has succeeded.",
		Example: "  ebctl quota list\n" +
			"  ebctl quota list --account 8cd57dc2-edb2-45e0-af8b-7d881006e516",
		Args: arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) error {
			list, err := client.ListQuotas(ctx, query)
			if err != nil {
				return fmt.Errorf("listing the quotas: %w", err)
			}

			return session.print(list, quotaTable(list))
		}),
	}

	command.Flags().StringVar(&query.Name, "name", "", "only this quota")
	command.Flags().StringVar(&query.Account, "account", "", "only the usage of this global account")
	command.Flags().StringVar(&query.Subaccount, "subaccount", "", "only the usage of this subaccount")
	command.Flags().IntVar(&query.PageSize, "limit", 0, "how many tenants, plans and regions to list for each quota, at most 100 (default 50)")

	return command
}

// quotaTable returns a table with a row for each group, and one row for each quota without groups.
func quotaTable(list operatorapi.QuotaList) output.Rows {
	table := output.Rows{Head: []string{"QUOTA", "ACCOUNT", "SUBACCOUNT", "PLAN", "REGION", "USED", "LIMIT"}, None: "No quotas found.", IDs: []string{}}

	for _, quota := range list.Data {
		table.IDs = append(table.IDs, quota.Name)

		plans, regions := strings.Join(quota.Plans, ","), strings.Join(quota.Regions, ",")

		if len(quota.Groups) == 0 {
			table.Rows = append(table.Rows, []string{quota.Name, "", "", plans, regions, "0", limitText(quota.Limit)})
		}

		for _, group := range quota.Groups {
			row := []string{quota.Name, group.Account, group.Subaccount, plans, regions, strconv.Itoa(group.Used), limitText(group.Limit)}
			if group.Plan != "" {
				row[3] = group.Plan
			}

			if group.Region != "" {
				row[4] = group.Region
			}

			table.Rows = append(table.Rows, row)
		}

		if quota.More {
			table.Rows = append(table.Rows, []string{quota.Name, "…", "", "", "", "", ""})
		}
	}

	return table
}

// limitText formats a limit. A negative number means no limit.
func limitText(limit int) string {
	if limit < 0 {
		return "none"
	}

	return strconv.Itoa(limit)
}
