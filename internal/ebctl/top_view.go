package ebctl

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
)

// Keys of the live overview.
const (
	keyQuit      = 'q'
	keyPause     = 'p'
	keyRefresh   = 'r'
	keyInterrupt = 3 // Ctrl-C, which a terminal in raw mode does not convert to a signal
)

// topView implements 'ebctl top'.
type topView struct {
	session  *session
	client   *brokerclient.Client
	interval time.Duration
	order    string
	paused   bool
}

// once prints one overview.
func (v *topView) once(ctx context.Context) error {
	shown, err := v.session.overview(ctx, v.client)
	if err != nil {
		return err
	}

	shown.Operations = sorted(shown.Operations, v.order)

	session := v.session

	return session.print(shown, shown)
}

// run draws overviews until the user presses q or the context ends. After a temporary error, it keeps showing the last overview,
// together with the error.
func (v *topView) run(ctx context.Context) error {
	keys, restore, err := v.session.Keys()
	if err != nil {
		return fmt.Errorf("reading keys: %w", err)
	}
	defer restore()

	screen := follow.NewLive(v.session.Err, v.session.size)

	var (
		shown  overview
		failed error
	)

	for refresh := true; ; {
		if refresh {
			next, err := v.session.overview(ctx, v.client)

			switch failed = err; {
			case ctx.Err() != nil:
				return nil // the user has interrupted the command
			case err == nil:
				shown = next
			case shown.At.IsZero() || !follow.Temporary(err):
				return err
			}
		}

		screen.Draw(v.lines(shown, failed, v.session.size()))

		var end bool
		if refresh, end = v.wait(ctx, keys); end {
			return nil
		}
	}
}

// wait waits until the next refresh is due or the user presses a key. It reports whether to refresh, and whether to quit.
func (v *topView) wait(ctx context.Context, keys <-chan byte) (refresh, end bool) {
	var tick <-chan time.Time
	if !v.paused {
		tick = v.session.Clock.After(v.interval)
	}

	select {
	case <-ctx.Done():
		return false, true
	case <-tick:
		return true, false
	case key, open := <-keys:
		switch {
		case !open, key == keyQuit, key == keyInterrupt:
			return false, true
		case key == keyRefresh:
			return true, false
		case key == keyPause:
			v.paused = !v.paused

			return !v.paused, false
		}

		for _, order := range topOrders() {
			if key == order[0] {
				v.order = order
			}
		}

		return false, false
	}
}

// lines returns the lines to draw. If they do not fit on the terminal, it cuts the end of the overview, because follow.Live would
// drop the first lines.
func (v *topView) lines(shown overview, failed error, size follow.Size) []string {
	shown.Operations = sorted(shown.Operations, v.order)

	var text strings.Builder

	shown.WriteText(&text) //nolint:errcheck // into memory

	state := "every " + output.Duration(v.interval)
	if v.paused {
		state = "paused"
	}

	if failed != nil {
		state += "; ! " + output.Line(failed.Error())
	}

	help := []string{"", "by " + v.order + ", " + state, "q quit  p pause  r refresh  a age  k kind  s state  i instance"}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")

	if visible := size.Height - len(help) - 1; size.Height > 0 && len(lines) > visible && visible > 0 {
		lines = append(lines[:visible-1], fmt.Sprintf("… %d more lines", len(lines)-visible+1))
	}

	return append(lines, help...)
}

// WriteText implements output.Text.
func (o overview) WriteText(w io.Writer) error {
	var text strings.Builder

	fmt.Fprintf(&text, "%s %s at %s\n\n", o.Service, o.Version, output.Time(o.At))
	output.Fields{
		{Name: "Unfinished", Value: fmt.Sprintf("%d in progress, %d pending, %d canceling, %d stuck", o.InProgress, o.Pending, o.Canceling, o.Stuck)},
		{Name: "Last hour", Value: fmt.Sprintf("%d accepted: %d succeeded, %d failed, %d canceled so far", o.LastHour.Accepted, o.LastHour.Succeeded, o.LastHour.Failed, o.LastHour.Canceled)},
		{Name: "Throughput", Value: strconv.FormatFloat(o.PerMinute, 'f', 1, 64) + " accepted per minute within the last 5 minutes"},
		{Name: "Systems", Value: systemsText(o.Systems, o.At)},
	}.WriteText(&text) //nolint:errcheck // into memory
	text.WriteString("\n")
	o.rows().WriteText(&text) //nolint:errcheck // into memory

	return output.Plain(text.String()).WriteText(w)
}

// systemsText describes the failing systems. If none fails, it describes the calls in flight.
func systemsText(systems []operatorapi.System, now time.Time) string {
	var failing, calls []string

	for _, system := range systems {
		calls = append(calls, fmt.Sprintf("%s %d of %d", system.Name, system.CallsInFlight, system.CallsLimit))

		if system.Failures > 0 || system.State != "closed" {
			failing = append(failing, explain.Explanation{At: now, System: system}.SystemText())
		}
	}

	switch {
	case len(systems) == 0:
		return "none"
	case len(failing) == 0:
		return "none failing; calls in progress: " + strings.Join(calls, ", ")
	default:
		return strings.Join(failing, " | ")
	}
}

func (o overview) rows() output.Rows {
	rows := output.Rows{
		Head: []string{"ID", "KIND", headState, "DURATION", "INSTANCE", "STEP", "PROBLEM"}, None: "No unfinished operations.", IDs: []string{},
	}

	for _, operation := range o.Operations {
		state := string(operation.State)
		if operation.Stuck {
			state = "stuck"
		}

		rows.Add(operation.ID,
			operation.ID, operation.Kind, state, output.Duration(max(o.At.Sub(operation.CreatedAt), 0)), instanceText(operation.Operation),
			operation.Step, explain.ProblemText(operation.Problem))
	}

	return rows
}

// Names implements output.Named.
func (o overview) Names() []string { return o.rows().IDs }
