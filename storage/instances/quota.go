package instances

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// QuotaGroup identifies the instances that share a quota by their values in some columns. The fields for the other columns are
// empty.
type QuotaGroup struct {
	GlobalAccountID string `db:"global_account_id"`
	SubAccountID    string `db:"subaccount_id"`
	PlanID          string `db:"plan_id"`
	Region          string `db:"region"`
}

// lock returns the key of the group's lock. If two groups happen to have the same key, their transactions only wait for each
// other.
func (g QuotaGroup) lock() int64 {
	hash := fnv.New64a()

	for _, value := range []string{"quota", g.GlobalAccountID, g.SubAccountID, g.PlanID, g.Region} {
		hash.Write([]byte(value + "\x00"))
	}

	return int64(hash.Sum64()) //nolint:gosec // any number is a key
}

// LockQuotas locks the groups until the caller's transaction ends, in an order that prevents deadlocks. The next statement of the
// transaction sees all instances that earlier holders of the locks have stored. SQLite has one writer at a time and needs no locks.
func (s *Store) LockQuotas(ctx context.Context, tx storage.Tx, groups ...QuotaGroup) error {
	if s.db.Driver() != storage.DriverPostgres {
		return nil
	}

	keys := make([]int64, 0, len(groups))
	for _, group := range groups {
		keys = append(keys, group.lock())
	}

	slices.Sort(keys)

	for _, key := range slices.Compact(keys) {
		if _, err := storage.Exec(ctx, tx, `SELECT pg_advisory_xact_lock(?)`, key); err != nil {
			return failure.While(err, "locking a quota")
		}
	}

	return nil
}

// Usage selects counts of instances, for quotas.
type Usage struct {
	// By are the columns to group by. Each combination of their values has a separate count.
	By QuotaColumns
	// Equal are the columns in which instances must have the same values as Of.
	Equal QuotaColumns
	Of    QuotaGroup
	// PlanIDs, Regions, Accounts and Subaccounts restrict the instances. Empty lists do not. The database limits the length of a list,
	// but always allows 1,000 values.
	PlanIDs, Regions, Accounts, Subaccounts []string
	// Limit is the maximum number of counts. The default is 1.
	Limit int
}

// QuotaColumns is a set of columns.
type QuotaColumns struct{ Account, Subaccount, Plan, Region bool }

// Used is a count of instances. In its QuotaGroup, only the columns in Usage.By are set.
type Used struct {
	QuotaGroup

	Used int `db:"used"`
}

// Usage returns counts of instances, largest first. Instances count regardless of their state. If By is empty, the result is a single
// count, which may be zero.
func (s *Store) Usage(ctx context.Context, tx storage.Tx, usage Usage) ([]Used, error) {
	var columns []string

	for _, column := range []struct {
		name   string
		chosen bool
	}{
		{"global_account_id", usage.By.Account}, {"subaccount_id", usage.By.Subaccount}, {"plan_id", usage.By.Plan}, {"region", usage.By.Region},
	} {
		if column.chosen {
			columns = append(columns, column.name)
		}
	}

	where, args := usage.where()
	text := `SELECT ` + strings.Join(append(slices.Clone(columns), `count(*) AS used`), ", ") + ` FROM instances` + where

	if len(columns) > 0 {
		by := strings.Join(columns, ", ")
		text += ` GROUP BY ` + by + ` ORDER BY used DESC, ` + by + ` ` + storage.Page(cmp.Or(usage.Limit, 1), 0)
	}

	used, err := storage.Select[Used](ctx, tx, text, args...)

	return used, failure.While(err, "counting the instances of a quota")
}

// where returns the WHERE clause and its arguments. If a tenant is given, plans and regions are compared as expressions. This makes
// SQLite use the index of the tenant: it does not know how many instances have a value, and might choose another index.
func (u Usage) where() (string, []any) {
	var conditions storage.Conditions

	conditions.Add(u.Equal.Account, "global_account_id = ?", u.Of.GlobalAccountID)
	conditions.Add(u.Equal.Subaccount, "subaccount_id = ?", u.Of.SubAccountID)
	conditions.Add(len(u.Accounts) > 0, "global_account_id IN (?)", u.Accounts)
	conditions.Add(len(u.Subaccounts) > 0, "subaccount_id IN (?)", u.Subaccounts)

	plan, region := "plan_id", "region"
	if u.Equal.Account || u.Equal.Subaccount || len(u.Accounts)+len(u.Subaccounts) > 0 {
		plan, region = "plan_id || ''", "region || ''"
	}

	conditions.Add(u.Equal.Plan, plan+" = ?", u.Of.PlanID)
	conditions.Add(u.Equal.Region, region+" = ?", u.Of.Region)
	conditions.Add(len(u.PlanIDs) > 0, plan+" IN (?)", u.PlanIDs)
	conditions.Add(len(u.Regions) > 0, region+" IN (?)", u.Regions)

	return conditions.Where()
}
