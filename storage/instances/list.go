package instances

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/labels"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// Filter selects instances. Empty fields do not restrict the selection.
type Filter struct {
	InstanceID string
	// ShootNames selects instances by the names of their Shoots. Pass at most the names of one page, because databases limit the
	// number of parameters.
	ShootNames []string
	// Name selects instances by their display name, which is not unique.
	Name            string
	GlobalAccountID string
	// GlobalAccountIDs selects instances of any of these global accounts. If it is empty, it selects instances of all accounts.
	GlobalAccountIDs []string
	SubAccountID     string
	// Region selects instances by their region, either of the cloud provider or of the platform.
	Region string
	// Platform selects instances by the platform that owns them.
	Platform string
	// Plan selects instances by the name or the ID of their plan.
	Plan string
	// Provider, RuntimeID, MaintenanceVersion and SubscriptionAccountID select instances by the columns of these names.
	Provider, RuntimeID, MaintenanceVersion, SubscriptionAccountID string
	// SharedWith selects instances that the named platform can use without owning them. The name must be a DNS label.
	SharedWith string
	// Since and Until select instances by their creation time. Since is inclusive, Until is exclusive.
	Since, Until time.Time
	// ExpiresBefore selects instances that have not expired yet, but will expire before the given time. Expired selects only expired
	// instances.
	ExpiresBefore time.Time
	Expired       bool
	// Suspended selects only suspended instances. Protected selects only instances with deletion protection.
	Suspended, Protected bool
	// Labels selects instances whose labels meet all conditions.
	Labels []labels.Condition
	// ServiceID and DashboardURL select instances by the columns of these names.
	ServiceID, DashboardURL string
	// UpdatedSince and UpdatedBefore select instances by the time of the last change to the instance or to its newest operation, whichever
	// is later. UpdatedSince is inclusive, UpdatedBefore is exclusive.
	UpdatedSince, UpdatedBefore time.Time
	// Kinds, States and OperationID select instances by their newest operation.
	Kinds       []string
	States      []process.State
	OperationID string
	// Problem selects instances whose newest operation has a problem that matches: its message contains the text (ignoring case), or
	// its reason or component equals the text.
	Problem string

	// Search selects instances whose name starts with the text (ignoring case), or whose ID, Shoot name, runtime ID, account ID or
	// subaccount ID equals the text.
	Search string
	// Anywhere makes Search match the text anywhere in these fields, ignoring case in all of them. No index supports such a search,
	// so the query scans the instances that the other fields select until a page is full.
	Anywhere bool

	// Sort is the order of the list. The zero value is Newest.
	Sort Sort
	// Before, BeforeID and BeforeKey select the next page. The method After sets them.
	Before              time.Time
	BeforeID, BeforeKey string
	// Offset is the number of instances to skip, for numbered pages. Large offsets are slow.
	Offset int
	// Limit is the maximum number of instances.
	Limit int
}

// Listed is an instance with its newest operation. It contains neither the instance's request nor the operation's data.
type Listed struct {
	Instance  environment.Instance
	Operation process.Record
}

// listedRow is an instance joined with its newest operation.
type listedRow struct {
	row
	operations.Joined
}

// columns lists all columns of an instance except the sealed request.
const columns = `instances.id, service_id, plan_id, plan_name, global_account_id, subaccount_id, platform_region, provider, region,
	name, shoot_name, runtime_id, dashboard_url, instances.created_at, instances.updated_at, subscription_account_id,
	exclusive, maintenance_version, suspended, expires_at, expired_at, platform, shared_with, deletion_protection`

// List returns instances without their requests. A subquery finds the IDs of the page, so that a late page skips
// index entries instead of rows.
func (s *Store) List(ctx context.Context, filter Filter) ([]Listed, error) {
	from, args := filter.from(s.db.Bytewise(), true)
	order := filter.Sort.by(s.db.Bytewise()).clause()

	rows, err := storage.Select[listedRow](ctx, s.db.Reader(), filter.planned()+`SELECT `+columns+`, `+operations.JoinedColumns+`
		FROM (SELECT instances.id`+from+order+storage.Page(filter.Limit, filter.Offset)+`) AS page
		JOIN instances ON instances.id = page.id`+operations.JoinNewest(s.db)+order, args...)
	if err != nil {
		return nil, fmt.Errorf("listing instances: %w", err)
	}

	listed := make([]Listed, 0, len(rows))
	for _, found := range rows {
		listed = append(listed, Listed{Instance: found.instance(), Operation: found.Record(found.row.ID)})
	}

	return listed, nil
}

// GetAll returns the instances with the given IDs. Both maps are keyed by instance ID. unreadable contains the errors of
// instances whose rows were changed outside of the broker or cannot be decrypted. IDs that do not exist are in neither map. Pass
// at most the IDs of one page, because databases limit the number of parameters.
func (s *Store) GetAll(ctx context.Context, tx storage.Tx, ids []string) (found map[string]environment.Instance, unreadable map[string]error, err error) {
	found, unreadable = map[string]environment.Instance{}, map[string]error{}
	if len(ids) == 0 {
		return found, unreadable, nil
	}

	rows, err := storage.Select[row](ctx, tx, `SELECT `+columns+`, request FROM instances WHERE instances.id IN (?)`, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("reading instances: %w", err)
	}

	for _, row := range rows {
		if found[row.ID], err = s.instance(row); err != nil {
			delete(found, row.ID)
			unreadable[row.ID] = err
		}
	}

	return found, unreadable, nil
}

// Count returns the number of instances that the filter selects on all pages together.
func (s *Store) Count(ctx context.Context, filter Filter) (int, error) {
	from, args := filter.from(s.db.Bytewise(), false)

	count, err := storage.Get[int](ctx, s.db.Reader(), filter.planned()+`SELECT count(*)`+from, args...)

	return count, failure.While(err, "counting instances")
}

// from returns the FROM and WHERE clauses and their arguments. If the filter selects instances by their newest operation, the
// query first finds operations in an index, and then drops those that are not the newest of their instance. This is fast for
// unfinished operations, because they are few even if many instances exist. bytewise is the SQL fragment that storage.DB.Bytewise
// returns.
func (f Filter) from(bytewise string, paged bool) (string, []any) {
	where, args := f.where(bytewise, paged)
	if !f.byOperation() {
		return ` FROM instances` + where, args
	}

	return ` FROM operations JOIN instances ON instances.id = operations.instance_id` + where + ` AND NOT EXISTS (
		SELECT 1 FROM operations AS newer
		WHERE newer.instance_id = operations.instance_id AND newer.position > operations.position)`, args
}

// planned returns a prefix for the query. If the filter has a search text, the prefix is storage.Unprepared, because one text may
// match a single instance and another text all of them. Otherwise, the prefix is empty.
func (f Filter) planned() string {
	if f.Search == "" {
		return ""
	}

	return storage.Unprepared
}

// byOperation reports whether the filter selects instances by their newest operation.
func (f Filter) byOperation() bool {
	return len(f.Kinds)+len(f.States) > 0 || f.OperationID != "" || f.Problem != "" || !f.UpdatedSince.IsZero() || !f.UpdatedBefore.IsZero()
}

// where returns the WHERE clause and its arguments. If paged is false, as for counts, it ignores Before, BeforeID and BeforeKey.
func (f Filter) where(bytewise string, paged bool) (string, []any) {
	var conditions storage.Conditions

	conditions.Add(f.InstanceID != "", "instances.id = ?", f.InstanceID)
	conditions.Add(len(f.ShootNames) > 0, "instances.shoot_name IN (?)", f.ShootNames)
	conditions.Add(f.Name != "", "instances.name = ? AND "+nameKey+bytewise+" = lower(?)", f.Name, f.Name) // the second condition can use an index
	conditions.Add(f.GlobalAccountID != "", "instances.global_account_id = ?", f.GlobalAccountID)
	conditions.Add(len(f.GlobalAccountIDs) > 0, "instances.global_account_id IN (?)", f.GlobalAccountIDs)
	conditions.Add(f.SubAccountID != "", "instances.subaccount_id = ?", f.SubAccountID)
	conditions.Add(f.Region != "", "(instances.region = ? OR instances.platform_region = ?)", f.Region, f.Region)
	conditions.Add(f.Platform != "", "instances.platform = ?", f.Platform)
	conditions.Add(f.Plan != "", "(instances.plan_name = ? OR instances.plan_id = ?)", f.Plan, f.Plan)
	conditions.Add(f.Provider != "", "instances.provider = ?", f.Provider)
	conditions.Add(f.RuntimeID != "", hasRuntime, f.RuntimeID)
	conditions.Add(f.MaintenanceVersion != "", "instances.maintenance_version = ?", f.MaintenanceVersion)
	conditions.Add(f.SubscriptionAccountID != "", // the second condition lets the query use the partial index
		"instances.subscription_account_id = ? AND instances.subscription_account_id <> ''", f.SubscriptionAccountID)
	conditions.Add(f.SharedWith != "", "' ' || instances.shared_with || ' ' LIKE ?", "% "+f.SharedWith+" %")
	conditions.Add(!f.Since.IsZero(), "instances.created_at >= ?", storage.At(f.Since))
	conditions.Add(!f.Until.IsZero(), "instances.created_at < ?", storage.At(f.Until))
	conditions.Add(!f.ExpiresBefore.IsZero(), "instances.expires_at < ? AND instances.expired_at IS NULL", storage.At(f.ExpiresBefore))
	conditions.Add(f.Expired, "instances.expired_at IS NOT NULL")
	conditions.Add(f.ServiceID != "", "instances.service_id = ?", f.ServiceID)
	conditions.Add(f.DashboardURL != "", "instances.dashboard_url = ?", f.DashboardURL)
	conditions.Add(f.Suspended, "instances.suspended")
	conditions.Add(f.Protected, "instances.deletion_protection")

	for _, label := range f.Labels {
		const labelled = "instances.id IN (SELECT instance_id FROM instance_labels WHERE name = ?"

		conditions.Add(label.Exact, labelled+" AND value = ?)", label.Name, label.Value)
		conditions.Add(!label.Exact, labelled+")", label.Name)
	}

	conditions.Add(len(f.Kinds) > 0, "operations.kind IN (?)", f.Kinds)
	conditions.Add(len(f.States) > 0, operations.InStates(f.States...))
	conditions.Add(f.OperationID != "", "operations.id = ?", f.OperationID)
	conditions.Add(f.Problem != "", `(lower(operations.problem_message) LIKE lower(?) ESCAPE '\' OR operations.problem_reason = ? OR operations.problem_component = ?)`,
		"%"+storage.EscapeLike(f.Problem)+"%", f.Problem, f.Problem)
	conditions.Add(!f.UpdatedSince.IsZero(), "(instances.updated_at >= ? OR operations.updated_at >= ?)", storage.At(f.UpdatedSince), storage.At(f.UpdatedSince))
	conditions.Add(!f.UpdatedBefore.IsZero(), "instances.updated_at < ? AND operations.updated_at < ?", storage.At(f.UpdatedBefore), storage.At(f.UpdatedBefore))
	f.search(&conditions, bytewise)

	if paged && f.BeforeID != "" {
		f.Sort.by(bytewise).after(&conditions, f)
	}

	return conditions.Where()
}

// hasRuntime selects an instance by the ID of its runtime. With the second condition, the database can use the partial index.
const hasRuntime = "instances.runtime_id = ? AND instances.runtime_id <> ''"

// search adds the condition of Search. Without Anywhere, PostgreSQL uses one index for each alternative and combines the results.
func (f Filter) search(conditions *storage.Conditions, bytewise string) {
	const last = "\U0010FFFF" // sorts after all other characters

	name := nameKey + bytewise

	conditions.Add(f.Search != "" && !f.Anywhere, "("+name+" >= lower(?) AND "+name+" < lower(?) OR instances.id = ? OR instances.shoot_name = ? OR "+hasRuntime+
		" OR instances.global_account_id = ? OR instances.subaccount_id = ?)",
		f.Search, f.Search+last, f.Search, f.Search, f.Search, f.Search, f.Search)

	contains := "%" + storage.EscapeLike(f.Search) + "%"

	// LIKE ignores case on SQLite, but not on PostgreSQL. IDs are compared bytewise, because lower is several times slower with other
	// collations.
	matches := func(column string) string {
		return " OR lower(instances." + column + bytewise + ") LIKE lower(?" + bytewise + `) ESCAPE '\'`
	}

	conditions.Add(f.Search != "" && f.Anywhere, `(lower(instances.name) LIKE lower(?) ESCAPE '\'`+matches("id")+matches("shoot_name")+
		matches("runtime_id")+matches("global_account_id")+matches("subaccount_id")+")",
		contains, contains, contains, contains, contains, contains)
}

// Summary contains the display name and the plan of an instance.
type Summary struct {
	Name   string `db:"name"`
	PlanID string `db:"plan_id"`
}

// Summaries returns the summaries of the given instances, keyed by ID. An ID without an instance has no entry in the result. Pass
// at most the IDs of one page, because databases limit the number of parameters.
func (s *Store) Summaries(ctx context.Context, ids []string) (map[string]Summary, error) {
	summaries := map[string]Summary{}
	if len(ids) == 0 {
		return summaries, nil
	}

	rows, err := storage.Select[struct {
		Summary

		ID string `db:"id"`
	}](ctx, s.db.Reader(), `SELECT id, name, plan_id FROM instances WHERE id IN (?)`, ids)
	if err != nil {
		return nil, fmt.Errorf("reading the names and plans of instances: %w", err)
	}

	for _, row := range rows {
		summaries[row.ID] = row.Summary
	}

	return summaries, nil
}
