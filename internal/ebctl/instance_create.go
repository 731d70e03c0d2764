package ebctl

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
)

// platform stands for the organization and the space of instances that no platform has ordered.
const platform = "ebctl"

// order is what the flags of 'instance create' say.
type order struct {
	id             string
	plan           string
	region         string
	parameters     string
	organization   string
	space          string
	platformRegion string
	waiting        waiting
}

func newInstanceCreateCommand(session *session) *cobra.Command {
	var order order

	command := &cobra.Command{
		Use:   "create NAME --plan PLAN",
		Short: "Order an instance",
		Long: "Order an instance of a plan.\n\n" +
			"The same command with the same --id may be repeated: it orders nothing twice.",
		Example: "  ebctl instance create my-runtime --plan aws --wait\n" +
			`  ebctl instance create my-runtime --plan aws --region eu-central-1 --parameters '{"autoScalerMax": 5}'`,
		Args: arguments("NAME"),
		RunE: func(command *cobra.Command, args []string) error { return session.create(command, args[0], order) },
	}

	flags := command.Flags()
	flags.StringVar(&order.plan, "plan", "", "the plan's name or id")
	flags.StringVar(&order.id, "id", "", "the instance's id; a new UUID by default")
	flags.StringVar(&order.region, "region", "", "the provider's region, the parameter of that name")
	flags.StringVar(&order.parameters, "parameters", "", "parameters of the plan as a JSON object, @FILE or @- for standard input")
	flags.StringVar(&order.organization, "organization", platform, "the organization's GUID")
	flags.StringVar(&order.space, "space", platform, "the space's GUID")
	flags.StringVar(&order.platformRegion, "platform-region", "", "the platform's region, such as cf-eu10")
	order.waiting.addFlags(command)
	completeBy(command, "plan", session.completePlan)

	return command
}

func (s *session) create(command *cobra.Command, name string, order order) error {
	if name == "" || order.plan == "" {
		return usage("a name and --plan are needed; 'ebctl catalog' shows the plans")
	}

	parameters, err := readParameters(s.In, order.parameters, order.region)
	if err != nil {
		return err
	}

	client, err := s.client()
	if err != nil {
		return err
	}

	offer, err := findPlan(command.Context(), client, order.platformRegion, order.plan)
	if err != nil {
		return err
	}

	details, err := order.details(name, offer, parameters)
	if err != nil {
		return err
	}

	if order.id == "" {
		order.id = s.NewID()
	}

	accepted, err := client.Provision(command.Context(), order.platformRegion, order.id, details)
	if err != nil {
		return createError(order.id, err)
	}

	return s.finish(command.Context(), client, newChange(order.id, accepted), order.waiting)
}

// details is the request's body. The name goes where platforms put it: into the context.
func (o order) details(name string, offer offer, parameters json.RawMessage) (domain.ProvisionDetails, error) {
	context, err := json.Marshal(map[string]string{
		"platform": platform, "instance_name": name, "organization_guid": o.organization, "space_guid": o.space,
	})
	if err != nil {
		return domain.ProvisionDetails{}, fmt.Errorf("encoding the context: %w", err)
	}

	return domain.ProvisionDetails{
		ServiceID:        offer.service.ID,
		PlanID:           offer.plan.ID,
		OrganizationGUID: o.organization,
		SpaceGUID:        o.space,
		RawContext:       context,
		RawParameters:    parameters,
	}, nil
}

// createError names the id where nobody knows what became of the request: repeated with it, nothing is ordered twice.
func createError(id string, err error) error {
	if _, ok := errors.AsType[*brokerclient.UnreachableError](err); ok {
		return fmt.Errorf("it may have been ordered all the same, repeat the command with --id %s: %w", id, err)
	}

	return fmt.Errorf("creating instance %s: %w", id, err)
}
