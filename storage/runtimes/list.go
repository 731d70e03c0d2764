package runtimes

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// Filter selects runtimes. Empty fields do not restrict the selection, except Deleted.
type Filter struct {
	ID string
	// Among selects runtimes by their IDs. Pass at most the IDs of one page, because databases limit the number of parameters.
	Among []string
	// Tenant and SubAccount are IDs in the form that they have in labels, see package tenancy.
	Tenant     string
	SubAccount string
	ShootName  string
	Region     string
	// Deleted includes deleted runtimes, which are otherwise not selected. Several of them may have the same Shoot name.
	Deleted bool
	// Kinds and States select runtimes by their newest operation.
	Kinds  []string
	States []process.State
	// Since (inclusive) and Until (exclusive) limit the creation time.
	Since, Until time.Time

	// Before and BeforeID select the next page: they are the creation time and the ID of the last runtime on the previous page.
	Before   time.Time
	BeforeID string
	// Offset is the number of runtimes to skip, for numbered pages. Large offsets are slow.
	Offset int
	// Limit is the maximum number of runtimes.
	Limit int
}

// Listed is a runtime with its newest operation. It contains neither the configuration of the runtime nor the payload of the
// operation.
type Listed struct {
	Runtime   Runtime
	Operation process.Record
}

// listedRow is a runtime joined with its newest operation.
type listedRow struct {
	row
	operations.Joined
}

// List returns runtimes without their configurations, newest first. Every runtime has an operation, because both are stored in
// one transaction. A subquery finds the IDs of the page, so that a late page skips index entries instead of rows.
func (s *Store) List(ctx context.Context, filter Filter) ([]Listed, error) {
	from, args := filter.from(true)

	rows, err := storage.Select[listedRow](ctx, s.db.Reader(), `SELECT `+listedColumns+`, `+operations.JoinedColumns+`
		FROM (SELECT runtimes.id`+from+` ORDER BY runtimes.created_at DESC, runtimes.id DESC `+
		storage.Page(filter.Limit, filter.Offset)+`) AS page
		JOIN runtimes ON runtimes.id = page.id`+operations.JoinNewest(s.db)+`
		ORDER BY runtimes.created_at DESC, runtimes.id DESC`, args...)
	if err != nil {
		return nil, fmt.Errorf("listing runtimes: %w", err)
	}

	listed := make([]Listed, 0, len(rows))
	for _, found := range rows {
		listed = append(listed, Listed{Runtime: found.runtime(), Operation: found.Record(found.row.ID)})
	}

	return listed, nil
}

// Count returns the number of runtimes that the filter selects on all pages together.
func (s *Store) Count(ctx context.Context, filter Filter) (int, error) {
	from, args := filter.from(false)

	count, err := storage.Get[int](ctx, s.db.Reader(), `SELECT count(*)`+from, args...)

	return count, failure.While(err, "counting runtimes")
}

// from returns the FROM and WHERE clauses and their arguments. If the filter has Kinds or States, the query first finds the
// matching operations in the index of operations, and then drops those that are not the newest of their runtime. This is fast for
// unfinished operations, because they are few even if there are many runtimes.
func (f Filter) from(paged bool) (string, []any) {
	conditions := f.conditions()
	conditions.Add(!f.Deleted, "runtimes.deleted_at IS NULL")
	conditions.Add(!f.Since.IsZero(), "runtimes.created_at >= ?", storage.At(f.Since))
	conditions.Add(!f.Until.IsZero(), "runtimes.created_at < ?", storage.At(f.Until))
	conditions.Add(paged && f.BeforeID != "", "(runtimes.created_at, runtimes.id) < (?, ?)", storage.At(f.Before), f.BeforeID)

	if len(f.Kinds)+len(f.States) == 0 {
		where, args := conditions.Where()

		return ` FROM runtimes` + where, args
	}

	conditions.Add(len(f.Kinds) > 0, "operations.kind IN (?)", f.Kinds)
	conditions.Add(len(f.States) > 0, operations.InStates(f.States...))

	where, args := conditions.Where()

	return ` FROM operations JOIN runtimes ON runtimes.id = operations.instance_id` + where + ` AND NOT EXISTS (
		SELECT 1 FROM operations AS newer
		WHERE newer.instance_id = operations.instance_id AND newer.position > operations.position)`, args
}

// conditions returns the conditions that the queries from the methods IDs and from have in common.
func (f Filter) conditions() storage.Conditions {
	var conditions storage.Conditions

	conditions.Add(f.ID != "", "runtimes.id = ?", f.ID)
	conditions.Add(len(f.Among) > 0, "runtimes.id IN (?)", f.Among)
	conditions.Add(f.Tenant != "", "runtimes.tenant = ?", f.Tenant)
	conditions.Add(f.SubAccount != "", "runtimes.subaccount = ?", f.SubAccount)
	conditions.Add(f.ShootName != "", "runtimes.shoot_name = ?", f.ShootName)
	conditions.Add(f.Region != "", "runtimes.region = ?", f.Region)

	return conditions
}

// IDs returns a query for the IDs of the runtimes, including deleted ones, that match the filter's ID, Among, Tenant, SubAccount,
// ShootName and Region. It ignores all other fields. If these six fields are empty, it returns the zero statement, which selects
// all runtimes when used as operations.Filter.Instances.
func (f Filter) IDs() storage.Statement {
	conditions := f.conditions()

	where, args := conditions.Where()
	if where == "" {
		return storage.Statement{}
	}

	return storage.Statement{Text: `SELECT runtimes.id FROM runtimes` + where, Args: args}
}

// Summaries returns the runtimes with the given IDs, including deleted ones, without their configurations. The result is keyed by
// ID and contains no entry for an ID without a runtime. Pass at most the IDs of one page, because databases limit the number of
// parameters.
func (s *Store) Summaries(ctx context.Context, ids []string) (map[string]Runtime, error) {
	summaries := map[string]Runtime{}
	if len(ids) == 0 {
		return summaries, nil
	}

	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT `+listedColumns+` FROM runtimes WHERE id IN (?)`, ids)
	if err != nil {
		return nil, fmt.Errorf("reading runtimes of a list: %w", err)
	}

	for _, row := range rows {
		summaries[row.ID] = row.runtime()
	}

	return summaries, nil
}

// WithoutRegion returns the IDs of at most limit runtimes whose rows do not contain the region. The IDs are sorted and greater
// than after.
func (s *Store) WithoutRegion(ctx context.Context, after string, limit int) ([]string, error) {
	ids, err := storage.Select[string](ctx, s.db.Reader(),
		`SELECT id FROM runtimes WHERE region IS NULL AND id > ? ORDER BY id `+storage.Page(limit, 0), after)

	return ids, failure.While(err, "finding runtimes without a region")
}

// SetRegion records the provider and the region of a runtime whose row does not contain them.
func (s *Store) SetRegion(ctx context.Context, id, provider, region string) error {
	_, err := storage.Exec(ctx, s.db.Writer(),
		`UPDATE runtimes SET provider = ?, region = ? WHERE id = ? AND region IS NULL`, provider, region, id)

	return failure.While(err, "recording the region of runtime %s", id)
}
