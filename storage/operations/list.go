package operations

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Filter selects operations. Empty fields do not restrict the selection.
type Filter struct {
	InstanceID string
	// Instances is a query that returns instance IDs, such as the one that runtimes.Filter.IDs returns. Only operations of these
	// instances are selected. The zero statement selects the operations of all instances.
	Instances storage.Statement
	Kinds     []string
	States    []process.State
	// StuckAt, if set, selects the operations in progress that need attention at this time: those that have a problem, that have been
	// due for process.Overdue, or that have run for process.TooLong.
	StuckAt time.Time
	// Since (inclusive) and Until (exclusive) limit the time at which the operations were accepted.
	Since, Until time.Time

	// Before and BeforeID select the next page. They are the creation time and the ID of the last operation on the previous
	// page.
	Before   time.Time
	BeforeID string
	// Offset is the number of operations to skip, for numbered pages. Large offsets are slow.
	Offset int
	// Limit is the maximum number of operations.
	Limit int
}

// List returns operations without their payloads, newest first. A subquery finds the IDs of the page, so that a late page skips
// index entries instead of rows.
func (s *Store) List(ctx context.Context, filter Filter) ([]process.Record, error) {
	where, args := filter.where(true)

	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT `+forecast+` FROM operations WHERE id IN (
		SELECT id FROM operations`+where+` ORDER BY created_at DESC, id DESC `+storage.Page(filter.Limit, filter.Offset)+`)
		ORDER BY created_at DESC, id DESC`, args...)
	if err != nil {
		return nil, fmt.Errorf("listing operations: %w", err)
	}

	return records(rows), nil
}

// Count returns the number of operations that the filter selects on all pages together.
func (s *Store) Count(ctx context.Context, filter Filter) (int, error) {
	where, args := filter.where(false)

	count, err := storage.Get[int](ctx, s.db.Reader(), `SELECT count(*) FROM operations`+where, args...)
	if err != nil {
		return 0, fmt.Errorf("counting operations: %w", err)
	}

	return count, nil
}

// where returns the WHERE clause and its arguments. If paged is false, as for counts, it ignores Before and BeforeID.
func (f Filter) where(paged bool) (string, []any) {
	var conditions storage.Conditions

	conditions.Add(f.InstanceID != "", "instance_id = ?", f.InstanceID)
	conditions.Add(f.Instances.Text != "", "instance_id IN ("+f.Instances.Text+")", f.Instances.Args...)
	conditions.Add(len(f.Kinds) > 0, "kind IN (?)", f.Kinds)
	conditions.Add(len(f.States) > 0, InStates(f.States...))
	conditions.Add(!f.StuckAt.IsZero(), InStates(process.InProgress))
	conditions.Add(!f.StuckAt.IsZero(), `(problem_message <> '' OR started_at <= ? OR lease_owner = '' AND next_run_at <= ?)`,
		storage.At(f.StuckAt.Add(-process.TooLong)), storage.At(f.StuckAt.Add(-process.Overdue)))
	conditions.Add(!f.Since.IsZero(), "created_at >= ?", storage.At(f.Since))
	conditions.Add(!f.Until.IsZero(), "created_at < ?", storage.At(f.Until))
	conditions.Add(paged && f.BeforeID != "", "(created_at, id) < (?, ?)", storage.At(f.Before), f.BeforeID)

	return conditions.Where()
}

// InStates returns the SQL condition that selects operations by their states. The states are literals instead of parameters, and
// grouped in the same way as in the partial indexes: databases use a partial index only if the query's condition implies the
// index's.
func InStates(states ...process.State) string {
	groups := [][]process.State{
		{process.Pending}, {process.InProgress, process.Canceling}, {process.Failed, process.Canceled}, {process.Succeeded},
	}
	conditions := []string{}

	for _, group := range groups {
		words := []string{}

		for _, state := range group {
			if slices.Contains(states, state) {
				words = append(words, "'"+string(state)+"'")
			}
		}

		if len(words) > 0 {
			conditions = append(conditions, "operations.state IN ("+strings.Join(words, ", ")+")")
		}
	}

	if len(conditions) == 0 {
		return "FALSE" // none of the given states is known
	}

	return "(" + strings.Join(conditions, " OR ") + ")"
}
