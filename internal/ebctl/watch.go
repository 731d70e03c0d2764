package ebctl

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// watchInterval is the time between two requests for a watched list.
const watchInterval = 2 * time.Second

// watch prints all entries, and then entries that are new or have changed, until the context ends, which is not an error. If a
// later request fails with a temporary error, watch prints the error and continues; any other error ends the watch. Removed
// entries are not reported.
func (l lister[L, E]) watch(ctx context.Context, session *session, given listFlags) error {
	changes := changedEntries{seen: map[string]string{}, noHeaders: given.noHeaders}

	client, err := l.open(ctx, session)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("listing %s: %w", l.entries, err)
	}

	for first := true; ctx.Err() == nil; first = false {
		list, err := l.list(ctx, client, given)

		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user has interrupted the watch
		case err == nil:
			if err := l.printChanged(session, list, &changes); err != nil {
				return err
			}
		case first || !follow.Temporary(err):
			return fmt.Errorf("listing %s: %w", l.entries, err)
		default:
			fmt.Fprintf(session.Err, "listing %s: %v; trying again\n", l.entries, err)
		}

		select {
		case <-ctx.Done():
			return nil
		case <-session.Clock.After(watchInterval):
		}
	}

	return nil
}

// changedEntries is the state of a watch between two requests.
type changedEntries struct {
	// seen contains the JSON form of each printed entry, keyed by ID.
	seen map[string]string
	// noHeaders is true after the header has been printed, or if --no-headers is set.
	noHeaders bool
	// widths contains the widths of the columns, so that all rows form one table.
	widths []int
}

// printChanged prints the entries that are new or have changed since the last request. With -o table, wide and name, they are
// rows of one table; in other formats, each entry is a separate document.
func (l lister[L, E]) printChanged(session *session, list L, changes *changedEntries) error {
	var changed []E

	_, entries := l.parts(&list)

	for _, entry := range *entries {
		encoded, err := json.Marshal(entry)
		if err != nil {
			return fmt.Errorf("encoding an entry: %w", err)
		}

		if id := l.id(entry); changes.seen[id] != string(encoded) {
			changes.seen[id] = string(encoded)

			changed = append(changed, entry)
		}
	}

	if session.format.ForPeople() || session.format == output.Name {
		if len(changed) == 0 {
			return nil
		}

		rows := l.rows(changed, changes.noHeaders)
		rows.Widths = &changes.widths
		changes.noHeaders = true

		return session.print(nil, rows)
	}

	for _, entry := range changed {
		if session.format == output.YAML {
			fmt.Fprintln(session.Out, "---")
		}

		if err := session.print(entry, output.Plain("")); err != nil {
			return err
		}
	}

	return nil
}
