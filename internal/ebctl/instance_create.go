package ebctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
)

// platform is the name of the platform in the request context, and the default for organization and space. The Open Service
// Broker API requires all three, but only platforms have meaningful values for them.
const platform = "ebctl"

// validName reports whether the broker would store the name unchanged. The broker replaces characters in other names, so the user
// would not find the instance by the name on the command line.
func validName(name string) bool {
	return regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,62}[a-zA-Z0-9])?$`).MatchString(name)
}

// order contains the flags of 'instance create'.
type order struct {
	id             string
	plan           string
	region         string
	parameters     parameterFlags
	organization   string
	space          string
	platformRegion string
	waiting        waiting
}

// newInstanceCreateCommand returns the command that creates an instance. With --id, users can repeat the command without creating
// a second instance.
func newInstanceCreateCommand(session *session) *cobra.Command {
	var order order

	command := &cobra.Command{
		Use:   "create NAME --plan PLAN",
		Short: "Create an instance",
		Long: "Create an instance of a plan.\n\n" +
			"With --id, the command is idempotent.",
		Example: "  ebctl instance create my-runtime --plan aws --wait\n" +
			`  ebctl instance create my-runtime --plan aws --region eu-central-1 --set autoScalerMax=5 --set networking.nodes=10.250.0.0/20` + "\n" +
			"  ebctl instance create my-runtime --plan aws --parameters @parameters.yaml",
		Args: arguments("NAME"),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			return session.create(ctx, client, args[0], order)
		}),
	}

	flags := command.Flags()
	flags.StringVar(&order.plan, "plan", "", "the plan's name or ID")
	flags.StringVar(&order.id, "id", "", "the instance's ID (default: a new UUID)")
	flags.StringVar(&order.region, "region", "", "the provider's region; sets the region parameter")
	flags.StringVar(&order.organization, "organization", platform, "the organization's GUID")
	flags.StringVar(&order.space, "space", platform, "the space's GUID")
	flags.StringVar(&order.platformRegion, "platform-region", "", "the platform's region, such as cf-eu10")
	order.parameters.add(command, "the plan's parameters")
	addWait(command, &order.waiting)
	completeBy(command, "plan", session.completePlan)

	return command
}

// create checks the flags, sends the request and prints the result.
func (s *session) create(ctx context.Context, client *brokerclient.Client, name string, order order) error {
	if name == "" || order.plan == "" {
		return usage("specify a name and --plan; 'ebctl catalog' lists the plans")
	}

	if !validName(name) {
		return usage("%q is not a valid name; use 1 to 64 letters, digits and hyphens, without a hyphen at either end", name)
	}

	parameters, err := order.parameters.read(s.In, order.region)
	if err != nil {
		return err
	}

	offer, err := findPlan(ctx, client, order.platformRegion, order.plan)
	if err != nil {
		return err
	}

	// The request has no field for the instance name. Like platforms, ebctl sends the name in the context.
	requestContext, err := json.Marshal(map[string]string{
		"platform": platform, "instance_name": name, "organization_guid": order.organization, "space_guid": order.space,
	})
	if err != nil {
		return fmt.Errorf("encoding the context: %w", err)
	}

	if order.id == "" {
		order.id = s.NewID()
	}

	accepted, err := client.Provision(ctx, order.platformRegion, order.id, domain.ProvisionDetails{
		ServiceID:        offer.service.ID,
		PlanID:           offer.plan.ID,
		OrganizationGUID: order.organization,
		SpaceGUID:        order.space,
		RawContext:       requestContext,
		RawParameters:    parameters,
	})

	// Without a response, the broker may still have accepted the request. Repeating it with the same ID is safe.
	if _, unreachable := errors.AsType[*brokerclient.UnreachableError](err); unreachable {
		return fmt.Errorf("the instance may have been created; repeat the command with --id %s: %w", order.id, err)
	}

	if err != nil {
		return &instanceError{instanceID: order.id, cause: fmt.Errorf("creating instance %s: %w", order.id, err)}
	}

	return s.finish(ctx, client, order.id, accepted, order.waiting)
}
