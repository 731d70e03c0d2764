package leftovers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// Filter selects leftovers. Empty fields do not restrict the selection. The fields have the same meanings as in instances.Filter.
type Filter struct {
	InstanceID, Name, GlobalAccountID, SubAccountID, Region, Platform, Plan string

	// Before and BeforeID select the next page. They are the DeletedAt and the ID of the last leftover on the previous page.
	Before        time.Time
	BeforeID      string
	Offset, Limit int
}

// Listed is a leftover with its newest cleanup or, if there was no cleanup, with the operation that left it behind. The payload
// of the operation is not included.
type Listed struct {
	Leftover  environment.Leftover
	Operation process.Record
}

// listedRow is a leftover joined with its operation.
type listedRow struct {
	row
	operations.Joined
}

// List returns leftovers, newest first.
func (s *Store) List(ctx context.Context, filter Filter) ([]Listed, error) {
	where, args := filter.where(true)

	rows, err := storage.Select[listedRow](ctx, s.db.Reader(), `SELECT `+columns+`, `+operations.JoinedColumns+`
		FROM leftovers JOIN operations ON operations.id = leftovers.newest_id`+where+`
		ORDER BY leftovers.deleted_at DESC, leftovers.id DESC `+storage.Page(filter.Limit, filter.Offset), args...)

	listed := make([]Listed, 0, len(rows))
	for _, found := range rows {
		leftover := found.leftover()
		listed = append(listed, Listed{Leftover: leftover, Operation: found.Record(leftover.Key())})
	}

	return listed, failure.While(err, "listing leftovers")
}

// Count returns the number of leftovers that the filter selects on all pages together.
func (s *Store) Count(ctx context.Context, filter Filter) (int, error) {
	where, args := filter.where(false)

	count, err := storage.Get[int](ctx, s.db.Reader(), `SELECT count(*) FROM leftovers`+where, args...)

	return count, failure.While(err, "counting leftovers")
}

// where returns the WHERE clause and its arguments. If paged is false, as for counts, it ignores Before and BeforeID.
func (f Filter) where(paged bool) (string, []any) {
	var conditions storage.Conditions

	conditions.Add(f.InstanceID != "", "leftovers.instance_id = ?", f.InstanceID)
	conditions.Add(f.Name != "", "leftovers.name = ?", f.Name)
	conditions.Add(f.GlobalAccountID != "", "leftovers.global_account_id = ?", f.GlobalAccountID)
	conditions.Add(f.SubAccountID != "", "leftovers.subaccount_id = ?", f.SubAccountID)
	conditions.Add(f.Region != "", "(leftovers.region = ? OR leftovers.platform_region = ?)", f.Region, f.Region)
	conditions.Add(f.Platform != "", "leftovers.platform = ?", f.Platform)
	conditions.Add(f.Plan != "", "(leftovers.plan_name = ? OR leftovers.plan_id = ?)", f.Plan, f.Plan)
	conditions.Add(paged && f.BeforeID != "", "(leftovers.deleted_at, leftovers.id) < (?, ?)", storage.At(f.Before), f.BeforeID)

	return conditions.Where()
}

// StepCount is the number of leftovers for which a step was not completed. Oldest is the DeletedAt of the oldest of them.
type StepCount struct {
	Step   string
	Count  int
	Oldest time.Time
}

// CountSteps counts, for each step, the leftovers for which this step was not completed. It is used for metrics. A leftover with
// several such steps is counted for each of them.
func (s *Store) CountSteps(ctx context.Context) ([]StepCount, error) {
	rows, err := storage.Select[struct {
		Steps  string       `db:"steps"`
		Count  int          `db:"count"`
		Oldest storage.Time `db:"oldest"`
	}](ctx, s.db.Reader(), `SELECT steps, count(*) AS count, MIN(deleted_at) AS oldest FROM leftovers GROUP BY steps`)

	byStep := map[string]StepCount{}

	for _, row := range rows {
		for step := range strings.FieldsSeq(row.Steps) {
			counted, known := byStep[step]
			if !known || row.Oldest.Before(counted.Oldest) {
				counted.Oldest = row.Oldest.Time
			}

			byStep[step] = StepCount{Step: step, Count: counted.Count + row.Count, Oldest: counted.Oldest}
		}
	}

	counts := slices.SortedFunc(maps.Values(byStep), func(one, other StepCount) int { return cmp.Compare(one.Step, other.Step) })

	return counts, failure.While(err, "counting leftovers")
}
