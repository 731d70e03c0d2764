package ebctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
)

// platform is the platform in the context of requests, and the default organization and space. The Open Service Broker API requires all
// three, but only platforms have values for them.
const platform = "ebctl"

// order holds the flags of 'instance create'.
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

// newInstanceCreateCommand creates an instance of a plan. With --id, users can repeat the command without creating a second instance.
func newInstanceCreateCommand(session *session) *cobra.Command {
	var order order

	command := &cobra.Command{
		Use:   "create NAME --plan PLAN",
		Short: "Create an instance",
		Long: "Create an instance of a plan.\n\n" +
			"With --id, the command is idempotent.",
		Example: "  ebctl instance create my-runtime --plan aws --wait\n" +
			`  ebctl instance create my-runtime --plan aws --region eu-central-1 --parameters '{"autoScalerMax": 5}'`,
		Args: arguments("NAME"),
		RunE: func(command *cobra.Command, args []string) error { return session.create(command, args[0], order) },
	}

	flags := command.Flags()
	flags.StringVar(&order.plan, "plan", "", "the plan's name or ID")
	flags.StringVar(&order.id, "id", "", "the instance's ID; a new UUID by default")
	flags.StringVar(&order.region, "region", "", "the provider's region; sets the parameter region")
	flags.StringVar(&order.parameters, "parameters", "", "the plan's parameters: a JSON object, @FILE, or @- for standard input")
	flags.StringVar(&order.organization, "organization", platform, "the organization's GUID")
	flags.StringVar(&order.space, "space", platform, "the space's GUID")
	flags.StringVar(&order.platformRegion, "platform-region", "", "the platform's region, such as cf-eu10")
	addWait(command, &order.waiting)
	completeBy(command, "plan", session.completePlan)

	return command
}

// create checks the command line, sends the request and prints the result.
func (s *session) create(command *cobra.Command, name string, order order) error {
	if name == "" || order.plan == "" {
		return usage("give a name and --plan; 'ebctl catalog' lists the plans")
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

	// The request has no field for the name; platforms send the name in the context.
	requestContext, err := json.Marshal(map[string]string{
		"platform": platform, "instance_name": name, "organization_guid": order.organization, "space_guid": order.space,
	})
	if err != nil {
		return fmt.Errorf("encoding the context: %w", err)
	}

	if order.id == "" {
		order.id = s.NewID()
	}

	accepted, err := client.Provision(command.Context(), order.platformRegion, order.id, domain.ProvisionDetails{
		ServiceID:        offer.service.ID,
		PlanID:           offer.plan.ID,
		OrganizationGUID: order.organization,
		SpaceGUID:        order.space,
		RawContext:       requestContext,
		RawParameters:    parameters,
	})

	// The broker may have accepted a request that got no response. Repeating the request with the same ID is safe.
	if _, unreachable := errors.AsType[*brokerclient.UnreachableError](err); unreachable {
		return fmt.Errorf("the instance may have been created; repeat the command with --id %s: %w", order.id, err)
	}

	if err != nil {
		return fmt.Errorf("creating instance %s: %w", order.id, err)
	}

	return s.finish(command.Context(), client, order.id, accepted, order.waiting)
}

// readParameters returns the parameters of the flag as a JSON object, with the region added. The flag holds the object itself, @FILE, or @-
// for standard input. readParameters returns nil if both flag and region are empty, so that the request has no parameters.
func readParameters(stdin io.Reader, flag, region string) (json.RawMessage, error) {
	if flag == "" && region == "" {
		return nil, nil
	}

	text, err := readArgument(stdin, flag)
	if err != nil {
		return nil, err
	}

	parameters := map[string]json.RawMessage{}

	if len(text) > 0 {
		if err := json.Unmarshal(text, &parameters); err != nil {
			return nil, usage("--parameters is not a JSON object: %w", err)
		}
	}

	if region != "" {
		if _, twice := parameters["region"]; twice {
			return nil, usage("both --region and --parameters contain the region")
		}

		parameters["region"], _ = json.Marshal(region) //nolint:errchkjson // a string always has a JSON form
	}

	encoded, err := json.Marshal(parameters)
	if err != nil {
		return nil, fmt.Errorf("encoding the parameters: %w", err)
	}

	return encoded, nil
}

// readArgument returns the value of a flag, or the content of the file or standard input if the value starts with @.
func readArgument(stdin io.Reader, flag string) ([]byte, error) {
	path, named := strings.CutPrefix(flag, "@")

	switch {
	case !named:
		return []byte(flag), nil
	case path == "-":
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("reading the parameters from standard input: %w", err)
		}

		return text, nil
	}

	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usage("--parameters: %w", err)
	}

	return text, nil
}
