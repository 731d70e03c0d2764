package auditlog

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// Filter selects entries. Empty fields do not restrict the selection.
type Filter struct {
	InstanceID string
	// OrderedBy selects entries by the name that Actor.Name returns.
	OrderedBy string
	Action    string
	// ID selects one entry.
	ID string
	// Since (inclusive) and Until (exclusive) limit the time of the entries.
	Since, Until time.Time
	// Before and BeforeID select the next page. They are the time and the ID of the last entry on the previous page.
	Before   time.Time
	BeforeID string
	// Limit is the maximum number of entries.
	Limit int
}

// source is a table that contains entries. It maps fields of an entry to columns of the table or to constants. condition selects
// the rows that contain entries.
type source struct {
	table, at, action, operation, status, account, entry, condition string
}

func sources() []source {
	return []source{
		{table: "audit", at: "at", action: "action", operation: "operation_id", status: "status", account: "account", entry: "entry"},
		// Operations that retry another operation are excluded: the audit table contains their entries.
		{
			table: "operations", at: "created_at", action: "kind", operation: "id", status: strconv.Itoa(http.StatusAccepted), account: "''", entry: "audit",
			condition: "audit <> '' AND predecessor_id = ''",
		},
	}
}

// row is an entry from one of the sources.
type row struct {
	ID          string       `db:"id"`
	At          storage.Time `db:"at"`
	Action      string       `db:"action"`
	InstanceID  string       `db:"instance_id"`
	OperationID string       `db:"operation_id"`
	Status      int          `db:"status"`
	Account     string       `db:"account"`
	ErasedBy    string       `db:"erased_by"`
	Entry       string       `db:"entry"`
}

// List returns at most Limit entries, newest first. It reads a full page from each table, because one table may contain all of
// the newest entries.
func (s *Store) List(ctx context.Context, filter Filter) ([]Entry, error) {
	var rows []row

	for _, source := range sources() {
		where, args := filter.where(source)

		found, err := storage.Select[row](ctx, s.db.Reader(), fmt.Sprintf(
			`SELECT id, %s AS at, %s AS action, instance_id, %s AS operation_id, %s AS status, %s AS account, erased_by, %s AS entry
			FROM %s%s ORDER BY %s DESC, id DESC `,
			source.at, source.action, source.operation, source.status, source.account, source.entry, source.table, where, source.at,
		)+storage.Page(filter.Limit, 0), args...)
		if err != nil {
			return nil, fmt.Errorf("listing the audit log: %w", err)
		}

		rows = append(rows, found...)
	}

	slices.SortFunc(rows, func(one, other row) int {
		return cmp.Or(other.At.Compare(one.At.Time), strings.Compare(other.ID, one.ID))
	})

	return entries(rows[:min(len(rows), filter.Limit)])
}

// entries decodes rows. If one entry cannot be decoded, it returns an error instead of a list, because an audit log must not omit
// entries silently.
func entries(rows []row) ([]Entry, error) {
	entries := make([]Entry, 0, len(rows))

	for _, row := range rows {
		entry := Entry{
			ID: row.ID, At: row.At.Time, Action: row.Action, InstanceID: row.InstanceID, OperationID: row.OperationID, Status: row.Status,
			Account: row.Account, ErasedBy: row.ErasedBy,
		}
		if err := entry.Decode(row.Entry); err != nil {
			return nil, err
		}

		entries = append(entries, entry)
	}

	return entries, nil
}

func (f Filter) where(source source) (string, []any) {
	var conditions storage.Conditions

	conditions.Add(source.condition != "", source.condition)
	conditions.Add(f.ID != "", "id = ?", f.ID)
	conditions.Add(f.InstanceID != "", "instance_id = ?", f.InstanceID)
	conditions.Add(f.OrderedBy != "", "ordered_by = ?", f.OrderedBy)
	conditions.Add(f.Action != "", source.action+" = ?", f.Action)
	conditions.Add(!f.Since.IsZero(), source.at+" >= ?", storage.At(f.Since))
	conditions.Add(!f.Until.IsZero(), source.at+" < ?", storage.At(f.Until))
	conditions.Add(f.BeforeID != "", "("+source.at+", id) < (?, ?)", storage.At(f.Before), f.BeforeID)

	return conditions.Where()
}
