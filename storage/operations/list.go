package operations

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Filter selects operations; empty fields select all.
type Filter struct {
	InstanceID string
	Kind       string
	State      process.State
	// Before and BeforeID are where the last page ended: its last operation's creation and id.
	Before   time.Time
	BeforeID string
	// Offset skips operations: the way of pages with numbers.
	Offset int
	// Limit is how many to return at most.
	Limit int
}

// List returns operations, the newest first. Their ids are found first, and alone: so the way to a page far behind passes by entries
// of an index and not by rows.
func (s *Store) List(ctx context.Context, filter Filter) ([]process.Record, error) {
	where, args := filter.where(true)

	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT `+status+` FROM operations WHERE id IN (
		SELECT id FROM operations`+where+` ORDER BY created_at DESC, id DESC `+storage.Page(filter.Limit, filter.Offset)+`)
		ORDER BY created_at DESC, id DESC`, args...)
	if err != nil {
		return nil, fmt.Errorf("listing operations: %w", err)
	}

	return records(rows), nil
}

// Count returns how many operations the filter selects, on all pages.
func (s *Store) Count(ctx context.Context, filter Filter) (int, error) {
	where, args := filter.where(false)

	count, err := storage.Get[int](ctx, s.db.Reader(), `SELECT count(*) FROM operations`+where, args...)
	if err != nil {
		return 0, fmt.Errorf("counting operations: %w", err)
	}

	return count, nil
}

func (f Filter) where(paged bool) (string, []any) {
	conditions, args := []string{}, []any{}

	add := func(used bool, condition string, values ...any) {
		if used {
			conditions, args = append(conditions, condition), append(args, values...)
		}
	}

	add(f.InstanceID != "", "instance_id = ?", f.InstanceID)
	add(f.Kind != "", "kind = ?", f.Kind)
	add(f.State != "", InStates(f.State))
	add(paged && f.BeforeID != "", "(created_at, id) < (?, ?)", storage.At(f.Before), f.BeforeID)

	if len(conditions) == 0 {
		return "", nil
	}

	return " WHERE " + strings.Join(conditions, " AND "), args
}
