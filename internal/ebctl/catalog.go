package ebctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

func newCatalogCommand(session *session) *cobra.Command {
	var platformRegion string

	command := &cobra.Command{
		Use:   "catalog",
		Short: "Show the catalog of services and plans",
		Long: "Show the catalog of services and plans.\n\n" +
			"JSON and YAML contain the broker's whole catalog with the schemas of the parameters.",
		Args: arguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			client, err := session.client()
			if err != nil {
				return err
			}

			catalog, err := client.Catalog(command.Context(), platformRegion)
			if err != nil {
				return fmt.Errorf("reading the catalog: %w", err)
			}

			return session.print(catalog, catalogText(catalog))
		},
	}

	command.Flags().StringVar(&platformRegion, "platform-region", "", "the platform's region, such as cf-eu10")

	return command
}

// catalogText shows one line per plan.
func catalogText(catalog apiresponses.CatalogResponse) output.Text {
	rows := output.Rows{Head: []string{"SERVICE", "PLAN", "ID", "FREE", "DESCRIPTION"}, None: "The catalog is empty."}

	for _, service := range catalog.Services {
		for _, plan := range service.Plans {
			// By default, the protocol takes a plan as free.
			free := "yes"
			if plan.Free != nil && !*plan.Free {
				free = "no"
			}

			rows.Rows = append(rows.Rows, []string{service.Name, plan.Name, plan.ID, free, plan.Description})
		}
	}

	return rows
}

// offer is a plan with its service.
type offer struct {
	service domain.Service
	plan    domain.ServicePlan
}

// findPlan returns the only plan of the catalog with the name or ID.
func findPlan(ctx context.Context, client *brokerclient.Client, platformRegion, nameOrID string) (offer, error) {
	catalog, err := client.Catalog(ctx, platformRegion)
	if err != nil {
		return offer{}, fmt.Errorf("finding plan %s: %w", nameOrID, err)
	}

	var (
		found []offer
		names []string
	)

	for _, service := range catalog.Services {
		for _, plan := range service.Plans {
			names = append(names, plan.Name)

			if plan.Name == nameOrID || plan.ID == nameOrID {
				found = append(found, offer{service: service, plan: plan})
			}
		}
	}

	switch len(found) {
	case 0:
		return offer{}, &notFoundError{text: fmt.Sprintf("plan %q does not exist; the catalog has %s", nameOrID, strings.Join(names, ", "))}
	case 1:
		return found[0], nil
	default:
		return offer{}, usage("services %s and %s both have a plan %q: give the plan's ID",
			found[0].service.Name, found[1].service.Name, nameOrID)
	}
}

// completePlan offers the plans of the broker, or nothing if it does not answer.
func (s *session) completePlan(command *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var plans []cobra.Completion

	if client, err := s.client(); err == nil {
		if catalog, err := client.Catalog(command.Context(), ""); err == nil {
			for _, service := range catalog.Services {
				for _, plan := range service.Plans {
					plans = append(plans, cobra.CompletionWithDesc(plan.Name, plan.Description))
				}
			}
		}
	}

	return plans, cobra.ShellCompDirectiveNoFileComp
}
