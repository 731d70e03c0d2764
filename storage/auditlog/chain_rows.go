package auditlog

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/storage"
)

// timeText is a time column in the format of chain.TimeText. If the column does not contain a valid time, timeText contains the
// value unchanged, so that a verification detects the change.
type timeText string

// Scan implements sql.Scanner.
func (t *timeText) Scan(source any) error {
	switch value := source.(type) {
	case nil:
		*t = ""
	case time.Time:
		*t = timeText(chain.TimeText(value))
	case string:
		*t = timeText(value)
	case []byte:
		*t = timeText(value)
	default:
		*t = timeText(fmt.Sprint(value))
	}

	return nil
}

// coveredColumns returns the SQL expressions for the columns of chainRow, for the given source of the chain. The expressions use
// t as the alias of the source's table.
func coveredColumns(source string) string {
	if source == chain.SourceOperation {
		return `t.id AS id, t.created_at AS at, t.kind AS action, t.instance_id AS instance_id, '' AS operation_id,
			t.predecessor_id AS predecessor_id, '' AS status, t.tenant AS account, t.keep_until AS keep_until, t.ordered_by AS ordered_by,
			t.audit AS entry, t.erased_by AS erased_by`
	}

	return `t.id AS id, t.at AS at, t.action AS action, t.instance_id AS instance_id, t.operation_id AS operation_id,
		'' AS predecessor_id, CAST(t.status AS TEXT) AS status, t.account AS account, t.keep_until AS keep_until,
		t.ordered_by AS ordered_by, t.entry AS entry, t.erased_by AS erased_by`
}

// chainTable returns the name of a source's table, and the name of the table's time column.
func chainTable(source string) (table, at string) {
	if source == chain.SourceOperation {
		return "operations", "created_at"
	}

	return "audit", "at"
}

// chainRow is a row that the chain covers.
type chainRow struct {
	ID            string   `db:"id"`
	At            timeText `db:"at"`
	Action        string   `db:"action"`
	InstanceID    string   `db:"instance_id"`
	OperationID   string   `db:"operation_id"`
	PredecessorID string   `db:"predecessor_id"`
	Status        string   `db:"status"`
	Account       string   `db:"account"`
	KeepUntil     timeText `db:"keep_until"`
	OrderedBy     string   `db:"ordered_by"`
	Entry         string   `db:"entry"`
	ErasedBy      string   `db:"erased_by"`

	source string
}

// row returns the columns that the digests in the chain cover.
func (r chainRow) row() *chain.Row {
	return &chain.Row{
		At: string(r.At), Action: r.Action, InstanceID: r.InstanceID, OperationID: r.OperationID, PredecessorID: r.PredecessorID,
		Status: r.Status, Account: r.Account, OrderedBy: r.OrderedBy, Entry: r.Entry, ErasedBy: r.ErasedBy, KeepUntil: string(r.KeepUntil),
	}
}

// chainGroup is the number of rows whose contents are read into memory together. Entries of earlier releases can be several
// megabytes long.
const chainGroup = 25

// position is the sort key of a row in its table. The zero value precedes all rows.
type position struct{ at, id string }

// rowKey identifies a row that the chain covers.
type rowKey struct {
	position

	source string
}

// unchained examines the next limit rows of a table after a position, in the order of their times, and returns those that have no
// record. It also returns the position of the last row that it examined, and whether there may be more rows. Each row costs one
// index lookup.
func unchained(ctx context.Context, tx storage.Tx, source string, after position, limit int) (rows []rowKey, last position, more bool, err error) {
	table, at := chainTable(source)

	var conditions storage.Conditions

	conditions.Add(after != position{}, "("+at+", id) > (?, ?)", after.at, after.id)

	where, args := conditions.Where()

	type scanned struct {
		ID      string   `db:"id"`
		At      timeText `db:"at"`
		Chained bool     `db:"chained"`
	}

	page, err := storage.Select[scanned](ctx, tx, fmt.Sprintf(`SELECT t.id AS id, t.at AS at,
			COALESCE((SELECT 1 FROM audit_chain WHERE audit_chain.id = t.id AND audit_chain.source = '%s'), 0) = 1 AS chained
		FROM (SELECT id, %s AS at FROM %s%s ORDER BY %s, id %s) AS t ORDER BY t.at, t.id`,
		source, at, table, where, at, storage.Page(limit, 0)), args...)
	if err != nil || len(page) == 0 {
		return nil, after, false, err
	}

	for _, row := range page {
		if !row.Chained {
			rows = append(rows, rowKey{position{string(row.At), row.ID}, source})
		}
	}

	last = position{at: string(page[len(page)-1].At), id: page[len(page)-1].ID}

	return rows, last, len(page) == limit, nil
}

// contents returns the rows with the given keys, in the order of the keys. It omits rows that do not exist.
func contents(ctx context.Context, tx storage.Tx, keys []rowKey) ([]chainRow, error) {
	found := map[string]chainRow{}

	for _, source := range []string{chain.SourceEntry, chain.SourceOperation} {
		var ids []string

		for _, key := range keys {
			if key.source == source {
				ids = append(ids, key.id)
			}
		}

		if len(ids) == 0 {
			continue
		}

		table, _ := chainTable(source)

		rows, err := storage.Select[chainRow](ctx, tx, `SELECT `+coveredColumns(source)+` FROM `+table+` AS t WHERE t.id IN (?)`, padded(ids))
		if err != nil {
			return nil, err
		}

		for _, row := range rows {
			row.source = source
			found[source+row.ID] = row
		}
	}

	all := make([]chainRow, 0, len(keys))

	for _, key := range keys {
		if row, exists := found[key.source+key.id]; exists {
			all = append(all, row)
		}
	}

	return all, nil
}

// restored returns the keys of the operations that have no record and belong to an instance that was restored or adopted according
// to one of the given entries.
func restored(ctx context.Context, tx storage.Tx, entries []string) ([]rowKey, error) {
	ids, err := storage.Select[string](ctx, tx, `SELECT operations.id FROM operations
		WHERE operations.instance_id IN (
			SELECT instance_id FROM audit WHERE id IN (?) AND action IN ('`+ActionRestore+`', '`+ActionAdopt+`') AND instance_id <> '')
		AND NOT EXISTS (SELECT 1 FROM audit_chain
			WHERE audit_chain.id = operations.id AND audit_chain.source = '`+chain.SourceOperation+`')
		ORDER BY operations.instance_id, operations.position`, padded(entries))

	keys := make([]rowKey, 0, len(ids))
	for _, id := range ids {
		keys = append(keys, rowKey{position{id: id}, chain.SourceOperation})
	}

	return keys, err
}

// padded repeats the last ID until the number of IDs is a multiple of chainGroup. IN lists thus have few different lengths, so
// that few different statements are prepared.
func padded(ids []string) []string {
	for len(ids)%chainGroup != 0 {
		ids = append(ids, ids[len(ids)-1])
	}

	return ids
}
