package ebctl

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// instance is a runtime, and the parameters of its service instance where they were asked for.
type instance struct {
	operatorapi.Runtime

	Parameters any `json:"parameters,omitempty"`
}

func newInstanceGetCommand(session *session) *cobra.Command {
	var withParameters bool

	command := &cobra.Command{
		Use:   "get ID_OR_NAME",
		Short: "Show an instance",
		Args:  arguments("ID_OR_NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			client, runtime, err := session.runtime(command.Context(), args[0])
			if err != nil {
				return err
			}

			shown := instance{Runtime: runtime}

			if withParameters {
				fetched, err := client.Instance(command.Context(), runtime.InstanceID)
				if err != nil {
					return fmt.Errorf("fetching the parameters of instance %s: %w", runtime.InstanceID, err)
				}

				shown.Parameters = fetched.Parameters
			}

			return session.print(shown, session.instanceText(shown))
		},
	}

	command.Flags().BoolVar(&withParameters, "with-parameters", false, "fetch the parameters, too, which only a ready instance has")

	return command
}

func (s *session) instanceText(shown instance) output.Text {
	last := shown.Status.LastOperation

	fields := output.Fields{
		{Name: "Name", Value: shown.Name},
		{Name: "Instance", Value: shown.InstanceID},
		{Name: "State", Value: string(shown.Status.State)},
		{Name: "Plan", Value: shown.ServicePlanName},
		{Name: "Region", Value: strings.TrimSpace(shown.Provider + " " + shown.Region)},
		{Name: "Platform region", Value: shown.SubAccountRegion},
		{Name: "Account", Value: shown.GlobalAccountID},
		{Name: "Subaccount", Value: shown.SubAccountID},
		{Name: "Runtime", Value: shown.RuntimeID},
		{Name: "Shoot", Value: shown.ShootName},
		{Name: "Dashboard", Value: shown.DashboardURL},
		{Name: "Created", Value: output.Time(shown.Status.CreatedAt)},
		{Name: "Expires", Value: expiry(shown.Status)},
	}

	if last.ID != "" {
		fields = append(fields,
			output.Field{Name: "Last operation", Value: fmt.Sprintf("%s %s, %s", last.Kind, last.ID, last.State)},
			output.Field{Name: "", Value: last.Description},
		)
	}

	if shown.Parameters != nil {
		fields = append(fields, output.Field{Name: "Parameters", Value: compact(shown.Parameters)})
	}

	return fields
}

// expiry tells when an instance expires or has, and nothing where its plan promises to last.
func expiry(status operatorapi.RuntimeStatus) string {
	switch {
	case status.ExpiredAt != nil:
		return "expired at " + output.Time(*status.ExpiredAt)
	case status.ExpiresAt != nil:
		return output.Time(*status.ExpiresAt)
	default:
		return ""
	}
}

// compact is a value in one line of JSON.
func compact(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}

	return string(encoded)
}
