package ebctl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
)

const (
	// defaultTopInterval is the default time between two refreshes. A refresh takes ten requests.
	defaultTopInterval = 5 * time.Second
	minTopInterval     = time.Second

	// topOperations is the maximum number of operations that are read for each state.
	topOperations = 100

	// topHour and topMinutes are the periods over which operations are counted, up to now.
	topHour    = time.Hour
	topMinutes = 5 * time.Minute
)

// overview is the state of a service at one moment.
type overview struct {
	At      time.Time `json:"at"`
	Service string    `json:"service"`
	Version string    `json:"version,omitempty"`

	Pending    int `json:"pending"`
	InProgress int `json:"inProgress"`
	Canceling  int `json:"canceling"`
	Stuck      int `json:"stuck"`

	// LastHour counts the operations that were accepted within the last hour, grouped by their current state.
	LastHour topCounts `json:"lastHour"`
	// PerMinute is the average number of operations that were accepted per minute in the last five minutes.
	PerMinute float64 `json:"acceptedPerMinute"`

	Systems []operatorapi.System `json:"systems"`
	// Operations are unfinished operations: at most 100 in each state and, in addition, at most 100 stuck ones.
	Operations []topOperation `json:"operations"`
}

// topCounts counts operations by state.
type topCounts struct {
	Accepted  int `json:"accepted"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Canceled  int `json:"canceled"`
}

type topOperation struct {
	operatorapi.Operation

	Stuck bool `json:"stuck"`
}

func newTopCommand(session *session) *cobra.Command {
	var (
		interval time.Duration
		order    = choice{noun: "order", values: topOrders()}
	)

	command := &cobra.Command{
		Use:   "top",
		Short: "Show unfinished and stuck operations, systems and throughput, live on a terminal",
		Long: session.text("Show the unfinished operations of the broker, the systems that it calls, and how many operations it accepts and completes.\n\n" +
			"On a terminal, the overview is refreshed until you press q. Press p to pause, r to refresh immediately, and a, k, s or i to sort the operations " +
			"by age, kind, state or instance. Otherwise, or with an output format other than table or wide, the overview is printed once."),
		Args: arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) error {
			if interval < minTopInterval {
				return usage("--interval must be at least %s", minTopInterval)
			}

			view := topView{session: session, client: client, interval: interval, order: cmp.Or(order.chosen, orderAge)}

			if session.live() {
				return view.run(ctx)
			}

			return view.once(ctx)
		}),
	}

	command.Flags().DurationVar(&interval, "interval", defaultTopInterval, "the time between two refreshes")
	command.Flags().Var(&order, "sort", "the order of the operations: age, kind, state or instance")
	complete(command, "sort", topOrders()...)

	return command
}

// live reports whether the overview can be refreshed in place: the output is a table, and standard input, output and error are
// terminals.
func (s *session) live() bool {
	_, terminal := s.Terminal()

	return terminal && s.format.ForPeople() && s.Colors != nil && s.Colors() && s.Keys != nil && s.Interactive()
}

// overview reads the state of the service. It sends ten requests.
func (s *session) overview(ctx context.Context, client *brokerclient.Client) (overview, error) {
	now := s.Clock.Now().UTC()
	shown := overview{At: now, Service: "broker", Systems: []operatorapi.System{}, Operations: []topOperation{}}

	if s.provisioner {
		shown.Service = "provisioner"
	}

	status, err := client.GetStatus(ctx)
	if err != nil {
		return shown, fmt.Errorf("reading the status: %w", err)
	}

	shown.Version, shown.Systems = status.Version, status.Systems

	stuck := map[string]bool{}

	list, err := s.counted(ctx, client, operatorapi.ListOperationsParams{State: operatorapi.OperationStateInProgress, Stuck: true}, topOperations, &shown.Stuck)
	for _, operation := range list {
		stuck[operation.ID] = true
	}

	// Add the stuck operations first, because the list of operations in progress may be too short to contain them all. Skip
	// operations that were already added.
	seen := map[string]bool{}
	add := func(operations []operatorapi.Operation) {
		for _, operation := range operations {
			if !seen[operation.ID] {
				seen[operation.ID] = true
				shown.Operations = append(shown.Operations, topOperation{operation, stuck[operation.ID] || explain.Stuck(operation, now)})
			}
		}
	}
	add(list)

	for _, state := range []struct {
		state operatorapi.OperationState
		count *int
	}{
		{operatorapi.OperationStateInProgress, &shown.InProgress},
		{operatorapi.OperationStateCanceling, &shown.Canceling},
		{operatorapi.OperationStatePending, &shown.Pending},
	} {
		if err == nil {
			list, err = s.counted(ctx, client, operatorapi.ListOperationsParams{State: state.state}, topOperations, state.count)
			add(list)
		}
	}

	if err != nil {
		return shown, err
	}

	err = s.countRecent(ctx, client, &shown)

	return shown, err
}

// countRecent sets LastHour and PerMinute in the overview.
func (s *session) countRecent(ctx context.Context, client *brokerclient.Client, shown *overview) error {
	recent := 0

	for _, counted := range []struct {
		state operatorapi.OperationState
		since time.Duration
		count *int
	}{
		{"", topHour, &shown.LastHour.Accepted},
		{operatorapi.OperationStateSucceeded, topHour, &shown.LastHour.Succeeded},
		{operatorapi.OperationStateFailed, topHour, &shown.LastHour.Failed},
		{operatorapi.OperationStateCanceled, topHour, &shown.LastHour.Canceled},
		{"", topMinutes, &recent},
	} {
		params := operatorapi.ListOperationsParams{State: counted.state, Since: shown.At.Add(-counted.since).Format(time.RFC3339)}
		if _, err := s.counted(ctx, client, params, 1, counted.count); err != nil {
			return err
		}
	}

	shown.PerMinute = float64(recent) / topMinutes.Minutes()

	return nil
}

// counted returns at most size operations that match params, and stores the total number of matches in count.
func (s *session) counted(ctx context.Context, client *brokerclient.Client, params operatorapi.ListOperationsParams, size int, count *int,
) ([]operatorapi.Operation, error) {
	params.PageSize, params.Total = size, true

	list, err := client.ListOperations(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("counting operations: %w", err)
	}

	*count = list.Count
	if list.TotalCount != nil {
		*count = *list.TotalCount
	}

	return list.Data, nil
}

// The sort orders of the operations. Stuck operations always come first.
const (
	orderAge      = "age"
	orderKind     = "kind"
	orderState    = "state"
	orderInstance = "instance"
)

func topOrders() []string { return []string{orderAge, orderKind, orderState, orderInstance} }

// sorted returns the operations in the given order, but with stuck ones first. Operations that are equal in this order are sorted
// by age, oldest first.
func sorted(operations []topOperation, order string) []topOperation {
	key := func(operation topOperation) string {
		switch order {
		case orderKind:
			return operation.Kind
		case orderState:
			return string(operation.State)
		case orderInstance:
			return cmp.Or(operation.InstanceName, operation.InstanceID)
		default:
			return ""
		}
	}

	ordered := slices.Clone(operations)
	slices.SortStableFunc(ordered, func(a, b topOperation) int {
		if a.Stuck != b.Stuck {
			if a.Stuck {
				return -1
			}

			return 1
		}

		return cmp.Or(cmp.Compare(key(a), key(b)), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})

	return ordered
}
