package ebctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

const (
	// resumeAfter is the pause before a broken stream is resumed.
	resumeAfter = 3 * time.Second
	// eventLimit is the default value of --limit. eventPage is the maximum number of events per request.
	eventLimit = 100
	eventPage  = 100
)

func newEventCommand(session *session) *cobra.Command {
	command := group("event", "List and follow events of instances, operations and orchestrations",
		newEventListCommand(session), newEventWatchCommand(session))
	command.Long = command.Short + ".\n\nThe broker keeps events for APP_EVENT_RETENTION, 7 days by default. Each event has a position in the event log."

	return command
}

// eventFlags contains the flags that 'event list' and 'event watch' share.
type eventFlags struct {
	params   operatorapi.ListEventsParams
	instance string
	after    int64
}

// add adds the flags to a command. after is the default value of --after, and start describes this default in the help text.
func (f *eventFlags) add(session *session, command *cobra.Command, after int64, start string) *cobra.Command {
	flags := command.Flags()
	flags.StringVar(&f.params.Types, "type", "", "only these types, separated by commas, such as operation.failed,instance.deleted")
	flags.StringVar(&f.instance, "instance", "", "only events of the instance with this ID or name")
	flags.StringVar(&f.params.Account, "account", "", "only events of this global account")
	flags.Int64Var(&f.after, "after", after, "only events after this position; "+start)
	completeBy(command, "instance", session.completeInstance)

	return command
}

func newEventListCommand(session *session) *cobra.Command {
	var (
		given eventFlags
		limit int
	)

	command := &cobra.Command{
		Use:   listCommand,
		Short: "List events, oldest first",
		Example: "  ebctl event list --instance my-cluster\n" +
			"  ebctl event list --type operation.failed --limit 1000",
		Args: arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) (err error) {
			if limit < 1 || given.after < -1 {
				return usage("--limit must be positive, and --after must not be negative")
			}

			if given.params.InstanceID, err = session.anyID(ctx, client, given.instance); err != nil {
				return err
			}

			list, err := given.list(ctx, client, limit)
			if err != nil {
				return fmt.Errorf("listing events: %w", err)
			}

			if list.More {
				fmt.Fprintf(session.Err, "There are more events. Use --after %d to list the next ones.\n", list.After)
			}

			return session.print(list, eventRows(list.Data))
		}),
	}

	command.Flags().IntVar(&limit, "limit", eventLimit, "list at most this number of events")

	return given.add(session, command, -1, "by default, the list begins with the oldest event")
}

// list returns at most limit events from as many pages as necessary.
func (f *eventFlags) list(ctx context.Context, client *brokerclient.Client, limit int) (operatorapi.CloudEventList, error) {
	all, params := operatorapi.CloudEventList{Data: []operatorapi.CloudEvent{}, More: true}, f.params

	// Without a position, the list starts with the oldest event, which follows position 0.
	params.After = max(f.after, 0)

	for all.More && len(all.Data) < limit {
		params.PageSize = min(eventPage, limit-len(all.Data))

		page, err := client.ListEvents(ctx, params)
		if err != nil {
			return all, err
		}

		all.Data, all.After, all.Last, all.More = append(all.Data, page.Data...), page.After, page.Last, page.More
		params.After = page.After
	}

	all.Count = len(all.Data)

	return all, nil
}

func newEventWatchCommand(session *session) *cobra.Command {
	var given eventFlags

	command := &cobra.Command{
		Use:   "watch",
		Short: "Print new events as they happen, until interrupted",
		Long: "Print new events as they happen, until interrupted.\n\n" +
			"If the connection breaks, the command continues after the last event. With -o json, each event is one document.",
		Example: "  ebctl event watch --type operation.failed\n" +
			"  ebctl event watch --after 0 -o json",
		Args: arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) (err error) {
			if given.after < -1 {
				return usage("--after must not be negative")
			}

			if given.params.InstanceID, err = session.anyID(ctx, client, given.instance); err != nil {
				return err
			}

			return session.watchEvents(ctx, client, given)
		}),
	}

	return given.add(session, command, -1, "by default, only new events")
}

// watchEvents prints events until the context ends, which is not an error.
func (s *session) watchEvents(ctx context.Context, client *brokerclient.Client, given eventFlags) error {
	// Start with column widths that fit typical values.
	widths := []int{8, 20, 22, 36, 14, 24} //nolint:mnd // see above

	headless, after := false, given.after

	for {
		var err error

		after, err = client.FollowEvents(ctx, given.params, after, func(event operatorapi.CloudEvent) error {
			if !s.format.ForPeople() && s.format != output.Name {
				if s.format == output.YAML {
					fmt.Fprintln(s.Out, "---")
				}

				return s.print(event, output.Plain(""))
			}

			rows := eventRows([]operatorapi.CloudEvent{event})
			rows.Widths, rows.NoHead, headless = &widths, headless, true

			return s.print(nil, rows)
		})

		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user has interrupted the command
		case !follow.Temporary(err):
			return fmt.Errorf("following events: %w", err)
		default:
			fmt.Fprintf(s.Err, "following events: %v; trying again\n", err)
		}

		select {
		case <-ctx.Done():
			return nil
		case <-s.Clock.After(resumeAfter):
		}
	}
}

func eventRows(events []operatorapi.CloudEvent) output.Rows {
	rows := output.Rows{
		Head:        []string{"POSITION", "AT", "TYPE", "OBJECT", "KIND", "DETAIL", "OPERATION", "GLOBAL ACCOUNT", "ID"},
		WideColumns: 3, // the operation, the account and the ID
		None:        "No events found.",
		IDs:         []string{},
	}

	for _, event := range events {
		data, position := event.Data, strings.TrimLeft(event.Sequence, "0")
		rows.Add(event.ID,
			position, output.Time(event.Time), strings.TrimPrefix(event.Type, typePrefix), data.InstanceID+data.OrchestrationID, data.Kind,
			eventDetail(data), data.OperationID, data.GlobalAccountID, event.ID)
	}

	return rows
}

// typePrefix is the prefix of the broker's event types in CloudEvents. Tables and flags omit it.
const typePrefix = "io.github.environment-broker."

// eventDetail returns the values of the fields that only some event types have.
func eventDetail(data operatorapi.CloudEventData) string {
	parts := []string{data.Plan, data.Region, data.State, data.Reason, data.Component}
	if data.BindingID != "" {
		parts = append(parts, "binding "+data.BindingID)
	}

	if data.Wave > 0 {
		parts = append(parts, "wave "+strconv.Itoa(data.Wave))
	}

	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}
