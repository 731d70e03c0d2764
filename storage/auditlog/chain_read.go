package auditlog

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// ErrChainCursor reports a cursor that does not come from ChainPage.
var ErrChainCursor = errors.New("the cursor is invalid")

// ChainPage is a page of the chain. The first pages contain all records in numerical order, and the last ones contain the rows
// that have no record.
type ChainPage struct {
	Records   []chain.Record
	Unchained []chain.Unchained
	// Head is the head of the chain when the page was read.
	Head chain.Head
	// Next is the cursor of the next page. It is empty on the last page.
	Next string
}

// pageBytes limits the total size of the entries on a page of the chain. A larger entry is returned alone on a page.
const pageBytes = 4 << 20

// chainedRow is a record of the chain with the row that it covers. Present is false if the row was removed.
type chainedRow struct {
	chainRow

	Number    int64    `db:"number"`
	ChainedAt timeText `db:"chained_at"`
	Source    string   `db:"source"`
	Limit     timeText `db:"record_keep_until"`
	Salt      string   `db:"salt"`
	Personal  string   `db:"personal"`
	Content   string   `db:"content"`
	Hash      string   `db:"hash"`
	Present   bool     `db:"present"`
}

func (r chainedRow) record() chain.Record {
	record := chain.Record{
		Number: r.Number, ChainedAt: string(r.ChainedAt), Source: r.Source, ID: r.ID, KeepUntil: string(r.Limit),
		Salt: r.Salt, Personal: r.Personal, Content: r.Content, Hash: r.Hash,
	}
	if r.Present {
		record.Row = r.row()
	}

	return record
}

// ChainPage returns the page that the cursor selects, or the first page for an empty cursor. A page contains at most limit
// records. Each page after the last record examines a fixed number of rows to find those without a record, so it may be empty.
func (s *Store) ChainPage(ctx context.Context, cursor string, limit int) (ChainPage, error) {
	source, after, err := parseChainCursor(cursor)
	if err != nil {
		return ChainPage{}, err
	}

	// Reject an invalid time here, because PostgreSQL would report an error. SQLite compares times as strings and accepts it.
	if after.at != "" && s.db.Driver() == storage.DriverPostgres && !isChainTime(after.at) {
		return ChainPage{}, ErrChainCursor
	}

	page := ChainPage{Records: []chain.Record{}, Unchained: []chain.Unchained{}}

	if page.Head, err = s.ChainHead(ctx); err != nil {
		return page, err
	}

	if source == "" {
		number, _ := strconv.ParseInt(after.id, 10, 64) // the cursor was checked

		page.Records, err = s.ChainRecords(ctx, number, limit)
		if err != nil {
			return page, err
		}

		page.Next = chainCursor(chain.SourceEntry, position{})
		if len(page.Records) > 0 {
			page.Next = chainCursor("", position{id: strconv.FormatInt(page.Records[len(page.Records)-1].Number, 10)})
		}

		return page, nil
	}

	rows, last, more, err := unchained(ctx, s.db.Reader(), source, after, chainPage)
	if err != nil {
		return page, failure.While(err, "finding rows without a record")
	}

	for _, row := range rows {
		page.Unchained = append(page.Unchained, chain.Unchained{Source: source, ID: row.id, At: row.at})
	}

	switch {
	case more:
		page.Next = chainCursor(source, last)
	case source == chain.SourceEntry:
		page.Next = chainCursor(chain.SourceOperation, position{})
	}

	return page, nil
}

// ChainHead returns the number and hash of the last record.
func (s *Store) ChainHead(ctx context.Context) (chain.Head, error) {
	head, err := storage.Get[chainHead](ctx, s.db.Reader(), `SELECT number, hash FROM audit_chain_head WHERE id = 1`)

	return chain.Head{Number: head.Number, Hash: head.Hash}, failure.While(err, "reading the head of the chain")
}

// ChainRecords returns at most limit records whose numbers are greater than after, with their rows. If their entries are large, it
// returns fewer records. It reads them in small groups, because entries of earlier releases can be large.
func (s *Store) ChainRecords(ctx context.Context, after int64, limit int) ([]chain.Record, error) {
	records, size := []chain.Record{}, 0

	for len(records) < limit {
		group, err := s.chainGroup(ctx, after, min(chainGroup, limit-len(records)))
		if err != nil {
			return nil, err
		}

		for _, record := range group {
			if record.Row != nil {
				size += len(record.Row.Entry)
			}

			if size > pageBytes && len(records) > 0 {
				return records, nil
			}

			records = append(records, record)
			after = record.Number
		}

		if len(group) < chainGroup {
			break
		}
	}

	return records, nil
}

// chainGroup returns at most limit records whose numbers are greater than after, with their rows, regardless of their size.
func (s *Store) chainGroup(ctx context.Context, after int64, limit int) ([]chain.Record, error) {
	rows, err := storage.Select[chainedRow](ctx, s.db.Reader(), `SELECT c.number, c.chained_at, c.source, c.id,
			c.keep_until AS record_keep_until, c.salt, c.personal, c.content, c.hash,
			a.id IS NOT NULL OR o.id IS NOT NULL AS present, COALESCE(a.at, o.created_at) AS at, COALESCE(a.action, o.kind, '') AS action,
			COALESCE(a.instance_id, o.instance_id, '') AS instance_id, COALESCE(a.operation_id, '') AS operation_id,
			COALESCE(o.predecessor_id, '') AS predecessor_id, COALESCE(CAST(a.status AS TEXT), '') AS status,
			COALESCE(a.account, o.tenant, '') AS account, COALESCE(a.keep_until, o.keep_until) AS keep_until,
			COALESCE(a.ordered_by, o.ordered_by, '') AS ordered_by,
			COALESCE(a.entry, o.audit, '') AS entry, COALESCE(a.erased_by, o.erased_by, '') AS erased_by
		FROM (SELECT * FROM audit_chain WHERE number > ? ORDER BY number `+storage.Page(limit, 0)+`) AS c
		LEFT JOIN audit AS a ON c.source = '`+chain.SourceEntry+`' AND a.id = c.id
		LEFT JOIN operations AS o ON c.source = '`+chain.SourceOperation+`' AND o.id = c.id
		ORDER BY c.number`, after)
	if err != nil {
		return nil, failure.While(err, "reading the audit log chain")
	}

	records := make([]chain.Record, 0, len(rows))

	for _, row := range rows {
		records = append(records, row.record())
	}

	return records, nil
}

// chainCursor encodes a position for clients, which must not depend on the encoding.
func chainCursor(source string, after position) string {
	return base64.RawURLEncoding.EncodeToString([]byte(source + "\n" + after.at + "\n" + after.id))
}

// isChainTime reports whether the string is a time in UTC, in the format of the cursors that chainCursor returns. PostgreSQL
// supports neither the year 0 nor all of the offsets that Go accepts.
func isChainTime(text string) bool {
	at, err := time.Parse(time.RFC3339Nano, text)

	return err == nil && at.Year() > 0 && at.Location() == time.UTC
}

// parseChainCursor decodes a cursor. If the returned source is empty, the next page contains the records after the number in
// after.id.
func parseChainCursor(cursor string) (source string, after position, err error) {
	if cursor == "" {
		return "", position{id: "0"}, nil
	}

	decoded, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.SplitN(string(decoded), "\n", 3) //nolint:mnd // the number of fields

	if err != nil || len(parts) != 3 || !storage.IsText(string(decoded)) {
		return "", position{}, ErrChainCursor
	}

	after = position{at: parts[1], id: parts[2]}

	switch parts[0] {
	case "":
		if _, err := strconv.ParseInt(after.id, 10, 64); err != nil {
			return "", position{}, ErrChainCursor
		}
	case chain.SourceEntry, chain.SourceOperation:
	default:
		return "", position{}, ErrChainCursor
	}

	return parts[0], after, nil
}
