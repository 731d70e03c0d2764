package ebctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

const (
	// defaultOverlap is the default number of hours for which the previous secret remains in use after a rotation.
	defaultOverlap = 24
	argWebhook     = "WEBHOOK"

	needsAdmin    = "\n\nThe command needs the admin role. The audit log records your name."
	needsOperator = "\n\nThe command needs the operator role. The audit log records changes and tests with your name."
)

func newWebhookCommand(session *session) *cobra.Command {
	return group("webhook", "Send events to other systems",
		newWebhookCreateCommand(session),
		newWebhookListCommand(session),
		newWebhookGetCommand(session),
		newWebhookRotateCommand(session),
		newWebhookTestCommand(session),
		newWebhookEnableCommand(session),
		newWebhookReplayCommand(session),
		newWebhookDeleteCommand(session),
	)
}

func newWebhookCreateCommand(session *session) *cobra.Command {
	var (
		order operatorapi.WebhookOrder
		types string
	)

	command := &cobra.Command{
		Use:   "create URL",
		Short: "Create a webhook, which receives events from now on",
		Long: "Create a webhook, which receives events from now on.\n\n" +
			"The output contains the secret that signs the messages. The secret is never shown again." + needsAdmin,
		Example: "  ebctl webhook create https://example.com/events --type operation.failed,orchestration.paused",
		Args:    arguments("URL"),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			order.URL = args[0]
			if types != "" {
				order.Types = strings.Split(types, ",")
			}

			created, err := client.CreateWebhook(ctx, order)
			if err != nil {
				return fmt.Errorf("creating a webhook: %w", err)
			}

			return session.printSecret(created)
		}),
	}

	command.Flags().StringVar(&types, "type", "", "only these types, separated by commas, such as operation.failed,instance.deleted")
	command.Flags().StringVar(&order.Account, "account", "", "only events of this global account")

	return command
}

// printSecret prints a webhook with its new secret.
func (s *session) printSecret(created operatorapi.WebhookSecret) error {
	fields := append(s.webhookFields(created.Webhook), output.Field{Name: "Secret", Value: created.Secret})

	return s.print(created, output.WithID{ID: created.Webhook.ID, Text: fields})
}

func (s *session) webhookFields(webhook operatorapi.Webhook) output.Fields {
	fields := output.Fields{
		{Name: "Webhook", Value: webhook.ID},
		{Name: "URL", Value: webhook.URL},
		{Name: "Types", Value: typesText(webhook)},
		{Name: "Account", Value: webhook.Account},
		{Name: "State", Value: webhookState(webhook)},
		{Name: "Pending", Value: strconv.Itoa(webhook.Pending)},
		{Name: "Dead letters", Value: strconv.Itoa(webhook.DeadLetters)},
	}

	if !webhook.DeliveredAt.IsZero() {
		fields = append(fields, output.Field{Name: "Last delivery", Value: output.Time(webhook.DeliveredAt)})
	}

	if !webhook.MissedAt.IsZero() {
		fields = append(fields, output.Field{Name: "Missed events", Value: output.Time(webhook.MissedAt)})
	}

	if !webhook.PreviousUntil.IsZero() {
		fields = append(fields, output.Field{Name: "Previous secret until", Value: output.Time(webhook.PreviousUntil)})
	}

	return fields
}

func typesText(webhook operatorapi.Webhook) string {
	if len(webhook.Types) == 0 {
		return "all"
	}

	return strings.Join(webhook.Types, ", ")
}

func webhookState(webhook operatorapi.Webhook) string {
	if webhook.DisabledAt.IsZero() {
		return "enabled"
	}

	return "disabled: " + webhook.DisabledReason
}

func newWebhookListCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   listCommand,
		Short: "List the webhooks",
		Args:  arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) error {
			list, err := client.ListWebhooks(ctx)
			if err != nil {
				return fmt.Errorf("listing webhooks: %w", err)
			}

			rows := output.Rows{Head: []string{argWebhook, "URL", "TYPES", "PENDING", "DEAD", headState}, None: "There are no webhooks.", IDs: []string{}}
			for _, each := range list.Data {
				rows.Add(each.ID,
					each.ID, each.URL, typesText(each), strconv.Itoa(each.Pending), strconv.Itoa(each.DeadLetters), webhookState(each))
			}

			return session.print(list, rows)
		}),
	}
}

// onWebhook returns a command that takes the ID of a webhook and calls run. If run fails, the error message starts with doing,
// for example "testing webhook …".
func onWebhook(session *session, use, doing, short string, run func(ctx context.Context, client *brokerclient.Client, id string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use + " " + argWebhook,
		Short: short,
		Long:  short + "." + needsOperator,
		Args:  arguments(argWebhook),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			return failure.While(run(ctx, client, args[0]), "%s webhook %s", doing, args[0])
		}),
	}
}

func newWebhookGetCommand(session *session) *cobra.Command {
	var dead, pending bool

	command := onWebhook(session, "get", "reading", "Show a webhook, or its undelivered events", func(ctx context.Context, client *brokerclient.Client, id string) error {
		if dead && pending {
			return usage("--dead-letters and --pending cannot be combined")
		}

		if !dead && !pending {
			webhook, err := client.GetWebhook(ctx, id)
			if err != nil {
				return err
			}

			return session.print(webhook, output.WithID{ID: webhook.ID, Text: session.webhookFields(webhook)})
		}

		list, err := session.undelivered(ctx, client, id, dead)
		if err != nil {
			return err
		}

		var webhook operatorapi.Webhook
		if pending {
			if webhook, err = client.GetWebhook(ctx, id); err != nil {
				return err
			}
		}

		return session.print(list, deliveryRows(list.Data, webhook))
	})

	command.Long = command.Short + ".\n\nEvents of an instance or an orchestration are sent one after the other. With --pending, NEXT is the time of the next " +
		"attempt or, for an event that waits for an earlier one, the position of the first pending event of its object. Nothing is sent to a disabled webhook." + needsOperator

	command.Flags().BoolVar(&dead, "dead-letters", false, "list the dead letters: events whose last delivery attempt has failed")
	command.Flags().BoolVar(&pending, "pending", false, "list the events that have not been delivered yet")

	return command
}

// deliveryRows returns the table of undelivered events of a webhook, in the order of their positions.
func deliveryRows(deliveries []operatorapi.WebhookDelivery, webhook operatorapi.Webhook) output.Rows {
	rows := output.Rows{Head: []string{"POSITION", "TYPE", "OBJECT", "ATTEMPTS", "NEXT", "ERROR"}, None: "Nothing is left.", IDs: []string{}}
	first := map[string]string{} // the position of the first pending event of each subject

	for _, each := range deliveries {
		position, next := strconv.FormatInt(each.Position, 10), ""
		before, waits := first[each.Event.Subject]

		switch {
		case each.Dead:
		case !webhook.DisabledAt.IsZero():
			next = "when enabled"
		case waits:
			next = "after " + before
		default:
			next = output.Time(each.NextAt)
		}

		if !each.Dead && !waits {
			first[each.Event.Subject] = position
		}

		rows.Add(position,
			position, strings.TrimPrefix(each.Event.Type, typePrefix), each.Event.Data.InstanceID+each.Event.Data.OrchestrationID,
			strconv.Itoa(each.Attempts), next, each.Error)
	}

	return rows
}

// undelivered returns all dead letters of a webhook if dead is true, and otherwise all its pending deliveries.
func (s *session) undelivered(ctx context.Context, client *brokerclient.Client, id string, dead bool) (operatorapi.WebhookDeliveryList, error) {
	all := operatorapi.WebhookDeliveryList{Data: []operatorapi.WebhookDelivery{}, More: true}
	params := operatorapi.ListWebhookDeliveriesParams{Dead: dead, PageSize: eventPage}

	for all.More {
		page, err := client.ListWebhookDeliveries(ctx, id, params)
		if err != nil {
			return all, err
		}

		all.Data, all.More = append(all.Data, page.Data...), page.More && len(page.Data) > 0
		if len(page.Data) > 0 {
			params.After = page.Data[len(page.Data)-1].Position
		}
	}

	all.Count = len(all.Data)

	return all, nil
}

func newWebhookRotateCommand(session *session) *cobra.Command {
	var overlap int

	command := onWebhook(session, "rotate", "replacing the secret of", "Replace the secret of a webhook", func(ctx context.Context, client *brokerclient.Client, id string) error {
		rotated, err := client.RotateWebhook(ctx, id, operatorapi.WebhookRotation{OverlapHours: overlap})
		if err != nil {
			return err
		}

		return session.printSecret(rotated)
	})
	command.Long = command.Short + ".\n\nUntil the overlap has passed, messages are signed with both secrets. Give the new secret to " +
		"the receiver during this time." + needsAdmin

	command.Flags().IntVar(&overlap, "overlap-hours", defaultOverlap, "for how many hours the previous secret remains in use; 0 retires it immediately")

	return command
}

func newWebhookTestCommand(session *session) *cobra.Command {
	return onWebhook(session, "test", "testing", "Send a test message to a webhook", func(ctx context.Context, client *brokerclient.Client, id string) error {
		result, err := client.TestWebhook(ctx, id)
		if err != nil {
			return err
		}

		if err := session.print(result, output.WithID{ID: id, Text: output.Fields{
			{Name: "Delivered", Value: strconv.FormatBool(result.Delivered)}, {Name: "Error", Value: result.Error},
		}}); err != nil {
			return err
		}

		if !result.Delivered {
			return fmt.Errorf("the receiver has not confirmed the message: %s", result.Error)
		}

		return nil
	})
}

func newWebhookEnableCommand(session *session) *cobra.Command {
	return onWebhook(session, "enable", "enabling", "Send events to a disabled webhook again", func(ctx context.Context, client *brokerclient.Client, id string) error {
		enabled, err := client.EnableWebhook(ctx, id)
		if err != nil {
			return err
		}

		return session.print(enabled, output.WithID{ID: enabled.ID, Text: session.webhookFields(enabled)})
	})
}

func newWebhookReplayCommand(session *session) *cobra.Command {
	var order operatorapi.WebhookReplay

	command := onWebhook(session, "replay", "sending events again to", "Send dead letters again, or send pending events immediately", func(ctx context.Context, client *brokerclient.Client, id string) error {
		if order.Position < 0 {
			return usage("--position must not be negative")
		}

		if order.Position > 0 && order.Pending {
			return usage("--position and --pending cannot be combined")
		}

		replayed, err := client.ReplayWebhook(ctx, id, order)
		if err != nil {
			return err
		}

		return session.print(replayed, output.WithID{ID: id, Text: output.Fields{{Name: "Replayed", Value: strconv.Itoa(replayed.Replayed)}}})
	})

	command.Long = command.Short + ".\n\nBy default, the command sends all dead letters, each with the full number of attempts. With --pending, events are sent before " +
		"their next attempt is due, but still after the earlier events of their subject. 'ebctl webhook get' lists both with their positions." + needsOperator
	command.Example = "  ebctl webhook replay WEBHOOK\n  ebctl webhook replay WEBHOOK --pending\n  ebctl webhook replay WEBHOOK --position 42"

	command.Flags().Int64Var(&order.Position, "position", 0, "send only the event at this position, which may be pending or a dead letter")
	command.Flags().BoolVar(&order.Pending, "pending", false, "send all pending events instead of the dead letters")

	return command
}

func newWebhookDeleteCommand(session *session) *cobra.Command {
	command := onWebhook(session, "delete", "deleting", "Delete a webhook", func(ctx context.Context, client *brokerclient.Client, id string) error {
		if err := session.confirm(ctx, "Delete webhook %s and its undelivered events?", id); err != nil {
			return err
		}

		deleted, err := client.DeleteWebhook(ctx, id)
		if err != nil {
			return err
		}

		return session.print(deleted, output.WithID{ID: deleted.ID, Text: output.Fields{{Name: "Deleted", Value: deleted.ID}}})
	})
	command.Long = command.Short + "." + needsAdmin

	return addYes(session, command)
}
