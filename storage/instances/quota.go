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

// QuotaGroup identifies a group of instances that share a quota, by the values that they have in common. Fields for other columns
// are empty.
type QuotaGroup struct {
	GlobalAccountID string `db:"global_account_id"`
	SubAccountID    string `db:"subaccount_id"`
	PlanID          string `db:"plan_id"`
	Region          string `db:"region"`
}

// lock returns the key under which the group is locked. If two groups happen to have the same key, the only effect is that their
// transactions wait for each other.
func (g QuotaGroup) lock() int64 {
	hash := fnv.New64a()

	for _, value := range []string{"quota", g.GlobalAccountID, g.SubAccountID, g.PlanID, g.Region} {
		hash.Write([]byte(value + "\x00"))
	}

	return int64(hash.Sum64()) //nolint:gosec // any number is a key
}

// LockQuotas locks the groups until the caller's transaction ends, in an order that prevents deadlocks. The next statement of the
// transaction sees all instances that earlier holders of the locks have stored. SQLite has only one writer at a time, so
// LockQuotas does nothing there.
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

// Usage selects instances and determines how they are counted for quotas.
type Usage struct {
	// By lists the columns to group by. There is a separate count for each combination of their values.
	By QuotaColumns
	// Equal lists the columns in which the counted instances must have the same values as Of.
	Equal QuotaColumns
	Of    QuotaGroup
	// PlanIDs, Regions, Accounts and Subaccounts restrict the counted instances. An empty list does not restrict them. Pass at most
	// 1,000 values in each list.
	PlanIDs, Regions, Accounts, Subaccounts []string
	// Limit is the maximum number of counts. The default is 1.
	Limit int
}

// QuotaColumns is a set of columns.
type QuotaColumns struct{ Account, Subaccount, Plan, Region bool }

// Used is a number of instances. In its QuotaGroup, only the fields that correspond to columns in Usage.By are set.
type Used struct {
	QuotaGroup

	Used int `db:"used"`
}

// Usage returns the numbers of instances, largest first. It counts instances regardless of their state. If By is empty, the result
// is a single count, which may be zero.
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

// where returns the WHERE clause and its arguments. If the usage is restricted to accounts or subaccounts, the clause compares
// plans and regions as expressions, for which SQLite cannot use an index. This makes SQLite use an index on accounts or
// subaccounts. Without the expressions, SQLite could choose a worse index, because it does not know how many instances have a
// given value.
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
