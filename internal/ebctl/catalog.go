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
	"github.com/environment-broker/environment-broker/internal/failure"
)

// newCatalogCommand returns the command that shows the catalog: one line per plan, or the broker's whole response as JSON or
// YAML.
func newCatalogCommand(session *session) *cobra.Command {
	var platformRegion string

	command := &cobra.Command{
		Use:   "catalog",
		Short: "Show the catalog of services and plans",
		Long: "Show the catalog of services and plans.\n\n" +
			"JSON and YAML contain the broker's whole catalog with the schemas of the parameters.",
		Args: arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) error {
			catalog, err := client.Catalog(ctx, platformRegion)
			if err != nil {
				return fmt.Errorf("reading the catalog: %w", err)
			}

			return session.print(catalog, catalogText(catalog))
		}),
	}

	command.Flags().StringVar(&platformRegion, "platform-region", "", "the platform's region, such as cf-eu10")

	return command
}

// catalogText returns a table with one line per plan.
func catalogText(catalog apiresponses.CatalogResponse) output.Text {
	rows := output.Rows{
		Head: []string{"SERVICE", "PLAN", "ID", "FREE", "DESCRIPTION"}, None: "The catalog is empty.", IDs: []string{},
	}

	for _, offer := range offers(catalog) {
		// In the Open Service Broker API, a plan without this field is free.
		free := "yes"
		if offer.plan.Free != nil && !*offer.plan.Free {
			free = "no"
		}

		rows.Add(offer.plan.ID, offer.service.Name, offer.plan.Name, offer.plan.ID, free, offer.plan.Description)
	}

	return rows
}

// offer is a plan with its service.
type offer struct {
	service domain.Service
	plan    domain.ServicePlan
}

// offers returns the plans of all services, in the order of the catalog.
func offers(catalog apiresponses.CatalogResponse) []offer {
	var all []offer

	for _, service := range catalog.Services {
		for _, plan := range service.Plans {
			all = append(all, offer{service: service, plan: plan})
		}
	}

	return all
}

// findPlan returns the plan with the given name or ID. It fails if several plans match, because two services can have plans with
// the same name.
func findPlan(ctx context.Context, client *brokerclient.Client, platformRegion, nameOrID string) (offer, error) {
	catalog, err := client.Catalog(ctx, platformRegion)
	if err != nil {
		return offer{}, fmt.Errorf("finding plan %s: %w", nameOrID, err)
	}

	var (
		found []offer
		names []string
	)

	for _, offer := range offers(catalog) {
		names = append(names, offer.plan.Name)

		if offer.plan.Name == nameOrID || offer.plan.ID == nameOrID {
			found = append(found, offer)
		}
	}

	switch len(found) {
	case 0:
		return offer{}, &notFoundError{text: fmt.Sprintf("plan %q does not exist; the catalog has %s%s",
			nameOrID, strings.Join(names, ", "), failure.Suggestion(nameOrID, names))}
	case 1:
		return found[0], nil
	default:
		return offer{}, usage("services %s and %s both have a plan %q: use the plan's ID",
			found[0].service.Name, found[1].service.Name, nameOrID)
	}
}

// completePlan returns the names of the broker's plans for shell completion. If the broker does not respond, it returns no names,
// because an error message would garble the command line.
func (s *session) completePlan(command *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var plans []cobra.Completion

	if client, err := s.client(); err == nil {
		if catalog, err := client.Catalog(command.Context(), ""); err == nil {
			for _, offer := range offers(catalog) {
				plans = append(plans, cobra.CompletionWithDesc(offer.plan.Name, offer.plan.Description))
			}
		}
	}

	return plans, cobra.ShellCompDirectiveNoFileComp
}
