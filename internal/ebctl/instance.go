package ebctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
	"github.com/environment-broker/environment-broker/process"
)

// newInstanceGetCommand returns the command that shows an instance with its parameters. If its newest operation has failed or is
// delayed, the command also shows the problem.
func newInstanceGetCommand(session *session) *cobra.Command {
	return session.newGetCommand(&cobra.Command{
		Use:   "get ID_OR_NAME",
		Short: "Show an instance with its parameters and the problem of its newest operation",
	}, "parameters", func(shown operatorapi.Runtime) output.Fields { return instanceFields(shown, session.Clock.Now()) })
}

// newGetCommand turns a command into one that shows an instance or a runtime. If an encryption key is lost, the service cannot read the
// sealed part, the parameters or the order. The command then shows the list entry, which contains everything else.
func (s *session) newGetCommand(command *cobra.Command, sealed string, fields func(operatorapi.Runtime) output.Fields) *cobra.Command {
	return s.onInstance(command, func(ctx context.Context, found target, _ []string) error {
		shown, err := found.GetRuntime(ctx, found.InstanceID)
		if err != nil && !answered(http.StatusInternalServerError)(err) {
			return fmt.Errorf("reading %s %s: %w", s.noun(), found.InstanceID, err)
		}

		if err != nil {
			fmt.Fprintf(s.Err, "The %s cannot be shown: %v\n", sealed, err)

			shown = found.Runtime
		}

		return s.print(shown, output.WithID{ID: shown.InstanceID, Text: fields(shown)})
	})
}

func instanceFields(shown operatorapi.Runtime, now time.Time) output.Fields {
	status, last := shown.Status, shown.Status.LastOperation

	var expires string

	switch {
	case !status.ExpiredAt.IsZero():
		expires = "expired at " + output.Time(status.ExpiredAt)
	case !status.ExpiresAt.IsZero():
		expires = output.Time(status.ExpiresAt)
	}

	fields := output.Fields{
		{Name: "Name", Value: shown.Name},
		{Name: "Instance", Value: shown.InstanceID},
		{Name: "State", Value: string(status.State)},
		{Name: "Plan", Value: shown.ServicePlanName},
		{Name: "Region", Value: strings.TrimSpace(shown.Provider + " " + shown.Region)},
		{Name: "Platform", Value: shown.Platform},
		{Name: "Shared with", Value: strings.Join(shown.SharedWith, ", ")},
		{Name: "Platform region", Value: shown.SubAccountRegion},
		{Name: "Account", Value: shown.GlobalAccountID},
		{Name: "Subaccount", Value: shown.SubAccountID},
		{Name: "Runtime", Value: shown.RuntimeID},
		{Name: "Shoot", Value: shown.ShootName},
		{Name: "Dashboard", Value: shown.DashboardURL},
		{Name: "Created", Value: output.Time(status.CreatedAt)},
		{Name: "Expires", Value: expires},
		{Name: "Labels", Value: shownLabels(shown.Labels)},
	}

	if shown.DeletionProtection {
		fields = append(fields, output.Field{Name: "Deletion protection", Value: onOrOff(true)})
	}

	fields = append(fields, lastOperationFields(last, explain.Of(last, now), "ebctl")...)
	fields = append(fields, eventFields(shown.Events)...)
	fields = append(fields, parameterFields("Parameters", shown.Parameters)...)

	return append(fields, parameterFields("Resolved", shown.Resolved)...)
}

// maxEvents is the number of events that the text output of an instance shows. JSON and YAML contain all events.
const maxEvents = 10

// eventFields returns a line for each of the newest events, with a title on the first line.
func eventFields(events []operatorapi.Event) output.Fields {
	fields, title := output.Fields{}, "Events"

	for _, event := range events[:min(len(events), maxEvents)] {
		line := output.Time(event.LastAt) + " " + event.System + " " + event.Result + ": " + event.Message
		if event.Count > 1 {
			line += fmt.Sprintf(" (%d times since %s)", event.Count, output.Time(event.FirstAt))
		}

		fields = append(fields, output.Field{Name: title, Value: line})
		title = ""
	}

	return fields
}

// parameterFields returns a line for each parameter, sorted by name, with the title on the first line. It returns no lines unless
// parameters is a JSON object with at least one field.
func parameterFields(title string, parameters any) output.Fields {
	object, _ := parameters.(map[string]any)
	fields := make(output.Fields, 0, len(object))

	for _, name := range slices.Sorted(maps.Keys(object)) {
		encoded, _ := json.Marshal(object[name]) //nolint:errchkjson // decoded from JSON
		fields = append(fields, output.Field{Name: title, Value: name + ": " + string(encoded)})
		title = ""
	}

	return fields
}

// change is the JSON output of a command that creates, changes or deletes an instance.
type change struct {
	InstanceID string `json:"instanceID"`
	// OperationID is empty if the broker completed the request immediately.
	OperationID string `json:"operationID,omitempty"`
	// State is the final state if the command waited or if the broker completed the request immediately. Otherwise, it is "in
	// progress".
	State        process.State `json:"state"`
	DashboardURL string        `json:"dashboardURL,omitempty"`
}

// finish prints the result of an accepted request. With --wait, it first waits for the operation. If the operation fails, finish
// prints the result and returns the error of the operation.
func (s *session) finish(ctx context.Context, client *brokerclient.Client, instanceID string, accepted brokerclient.Accepted,
	waiting waiting,
) error {
	result := change{
		InstanceID: instanceID, OperationID: accepted.Operation, State: process.Succeeded, DashboardURL: accepted.DashboardURL,
	}

	if accepted.Operation != "" {
		result.State = process.InProgress
	}

	var failed error

	if waiting.wanted && result.OperationID != "" {
		// Print the IDs before the wait, so that a user who presses Ctrl-C can follow the operation later.
		fmt.Fprintf(s.Err, "Instance %s, operation %s\n", result.InstanceID, result.OperationID)

		var operation operatorapi.Operation

		operation, failed = s.wait(ctx, client, result.OperationID, waiting.limit)
		result.State = cmp.Or(process.State(operation.State), result.State)
	}

	return cmp.Or(failed, s.print(result, output.WithID{ID: result.InstanceID, Text: output.Fields{
		{Name: "Instance", Value: result.InstanceID},
		{Name: "Operation", Value: result.OperationID},
		{Name: "State", Value: string(result.State)},
		{Name: "Dashboard", Value: result.DashboardURL},
	}}))
}

// newChangeCommand turns a command into one that changes an existing instance and can wait for the operation. If send fails, the
// error message starts with doing, for example "updating instance …".
func (s *session) newChangeCommand(command *cobra.Command, doing string, send changer) *cobra.Command {
	var waiting waiting

	s.onInstance(command, func(ctx context.Context, instance target, _ []string) error {
		accepted, err := send(ctx, instance)
		if err != nil {
			return fmt.Errorf("%s instance %s: %w", doing, instance.InstanceID, err)
		}

		return s.finish(ctx, instance.Client, instance.InstanceID, accepted, waiting)
	})

	addWait(command, &waiting)

	return command
}

// newInstanceUpdateCommand returns the command that updates an instance. The request contains only the fields whose flags are
// set, because omitted fields stay unchanged. With --maintenance, it contains the maintenance version in the catalog, the only
// version that the broker accepts.
func newInstanceUpdateCommand(session *session) *cobra.Command {
	var (
		plan        string
		given       parameterFlags
		maintenance bool
		parameters  json.RawMessage
	)

	command := session.newChangeCommand(&cobra.Command{
		Use:   "update ID_OR_NAME",
		Short: "Update an instance",
		Long: "Update the parameters, the plan or the maintenance version of an instance.\n\n" +
			"Whatever you do not set stays unchanged. The command is idempotent.",
		Example: `  ebctl instance update my-runtime --set autoScalerMax=10 --wait` + "\n" +
			"  ebctl instance update my-runtime --maintenance",
		PreRunE: func(*cobra.Command, []string) error {
			if plan == "" && !given.isSet() && !maintenance {
				return usage("set at least one of --plan, --parameters, --set or --maintenance")
			}

			var err error
			parameters, err = given.read(session.In, "")

			return err
		},
	}, "updating", func(ctx context.Context, instance target) (brokerclient.Accepted, error) {
		update := brokerclient.Update{ServiceID: instance.ServiceClassID, Parameters: parameters}

		if plan != "" || maintenance {
			offer, err := findPlan(ctx, instance.Client, instance.SubAccountRegion, cmp.Or(plan, instance.ServicePlanID))
			if err != nil {
				return brokerclient.Accepted{}, err
			}

			update.PlanID = offer.plan.ID
			if maintenance {
				if offer.plan.MaintenanceInfo == nil {
					return brokerclient.Accepted{}, fmt.Errorf("plan %s has no maintenance version in the catalog: update without --maintenance", offer.plan.Name)
				}

				update.MaintenanceInfo = &domain.MaintenanceInfo{Version: offer.plan.MaintenanceInfo.Version}
			}
		}

		return instance.Update(ctx, instance.InstanceID, update)
	})

	flags := command.Flags()
	flags.StringVar(&plan, "plan", "", "the name or ID of the new plan")
	given.add(command, "the parameters to change")
	flags.BoolVar(&maintenance, "maintenance", false, "upgrade the instance to the maintenance version of its plan in the catalog")
	completeBy(command, "plan", session.completePlan)

	return command
}

// newInstanceSuspendCommand returns the command that suspends an instance. Like a platform, it sends an update with the context
// {"active":false}.
func newInstanceSuspendCommand(session *session) *cobra.Command {
	return addYes(session, session.newChangeCommand(&cobra.Command{
		Use:   "suspend ID_OR_NAME",
		Short: "Delete the cluster of an instance and keep the instance",
		Long: "Delete the cluster of an instance with all its content, and keep the instance.\n\n" +
			"You can suspend only instances of plans that allow expiry.",
	}, "suspending", session.confirmed("Delete the cluster of instance %s with all its content, and keep the instance?", sendActive(false))))
}

// newInstanceResumeCommand returns the command that resumes an instance. It sends an update with the context {"active":true}. The
// new cluster contains nothing from the old one.
func newInstanceResumeCommand(session *session) *cobra.Command {
	return session.newChangeCommand(&cobra.Command{
		Use:   "resume ID_OR_NAME",
		Short: "Create a new cluster for a suspended instance",
		Long:  "Create a new, empty cluster for a suspended instance. Expired instances cannot be resumed.",
	}, "resuming", sendActive(true))
}

// sendActive returns a function that suspends or resumes an instance through the context of an update.
func sendActive(active bool) changer {
	return func(ctx context.Context, instance target) (brokerclient.Accepted, error) {
		return instance.Update(ctx, instance.InstanceID, brokerclient.Update{
			ServiceID: instance.ServiceClassID, Context: json.RawMessage(fmt.Sprintf(`{"active":%t}`, active)),
		})
	}
}

// newInstanceExpireCommand returns the command that expires an instance. It calls the operator API, because platforms cannot
// expire instances.
func newInstanceExpireCommand(session *session) *cobra.Command {
	return addYes(session, session.newChangeCommand(&cobra.Command{
		Use:   "expire ID_OR_NAME",
		Short: "Permanently delete the cluster of an instance",
		Long: "Permanently delete the cluster of an instance. The instance itself remains until you delete it, and cannot be resumed.\n\n" +
			"The command needs the operator role. Only instances of plans that allow expiry can be expired.",
	}, "expiring", session.confirmed("Permanently delete the cluster of instance %s?",
		func(ctx context.Context, instance target) (brokerclient.Accepted, error) {
			expiration, err := instance.ExpireInstance(ctx, instance.InstanceID)

			return brokerclient.Accepted{Operation: expiration.Operation}, err
		})))
}

// newInstanceDeleteCommand returns the command that deletes an instance. It calls the Open Service Broker API, which requires the
// IDs of the service and the plan.
func newInstanceDeleteCommand(session *session) *cobra.Command {
	return addYes(session, session.newChangeCommand(&cobra.Command{
		Use:   "delete ID_OR_NAME",
		Short: "Delete an instance and its cluster",
		Long: "Permanently delete an instance and its cluster.\n\n" +
			"A creation in progress is canceled first. The command is idempotent.",
	}, "deleting", session.confirmed("Permanently delete instance %s and its cluster?",
		func(ctx context.Context, instance target) (brokerclient.Accepted, error) {
			return instance.Deprovision(ctx, instance.InstanceID, domain.DeprovisionDetails{
				ServiceID: instance.ServiceClassID, PlanID: instance.ServicePlanID,
			})
		})))
}

// changer is a function that sends a request to change an instance.
type changer = func(ctx context.Context, instance target) (brokerclient.Accepted, error)

// confirmed returns a function that asks for confirmation and calls send unless the user declines. The question contains %s for
// the instance.
func (s *session) confirmed(question string, send changer) changer {
	return func(ctx context.Context, instance target) (brokerclient.Accepted, error) {
		if err := s.confirm(ctx, question, described(instance)); err != nil {
			return brokerclient.Accepted{}, err
		}

		return send(ctx, instance)
	}
}

// described returns the name, plan and ID of an instance, for confirmation prompts.
func described(instance target) string {
	return fmt.Sprintf("%s (plan %s, ID %s)", cmp.Or(instance.Name, "without a name"), instance.ServicePlanName, instance.InstanceID)
}
