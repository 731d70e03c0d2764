// Package prefill fills a database of the broker with copies of an instance that the broker has created. The copies have the
// same rows as the original, so most schema changes need no change here. Only new tables and sealed columns need an entry in
// tables.
package prefill

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// minTenants is the minimum number of tenants to which the copies belong. The benchmark load has the same number of tenants. In
	// larger databases, each tenant has instancesPerTenant instances.
	minTenants         = 100
	instancesPerTenant = 100
	// interval is the default difference in age between two consecutive copies.
	interval = 10 * time.Millisecond
)

// table is a table of the broker with rows that belong to an instance.
type table struct {
	name string
	// sealed is the name of the encrypted column, if any. place returns the context that binds an encrypted value to the row with
	// the given ID: the stores reject a value that was copied to another row.
	sealed string
	place  func(id string) string
	// number is the name of the column with consecutive row numbers, if any.
	number string
	// order is the column by which the original's rows are sorted, if their order matters.
	order string
	// timeline is true for tables whose rows belong to the timeline of an operation. They are removed when the retention period of the
	// timeline ends.
	timeline bool
}

// tables returns the tables with rows that belong to an instance, in the order in which they are filled. The encryption contexts
// are duplicated here, because the stores do not export them. A test reads copied rows through the stores to check that the
// contexts match.
func tables() []table {
	return []table{
		{name: "instances", sealed: "request", place: func(id string) string { return "request of instance " + id }},
		{name: "operations", sealed: "payload", place: func(id string) string { return "operation " + id }, order: "position"},
		{name: "timeline", timeline: true},
		{name: "step_attempts", timeline: true},
		{name: "endpoints", sealed: "endpoint", place: func(id string) string { return "endpoint of instance " + id }},
		{name: "audit"},
		{name: "audit_chain", number: "number"},
	}
}

// Options describe the copies.
type Options struct {
	// Count is the number of instances, including the original.
	Count int
	// Age is the age of the oldest copy. The ages of the others are distributed evenly. Zero means that the ages of consecutive
	// copies differ by 10 ms.
	Age time.Duration
	// Timelines is the maximum age of copies with a timeline, like a retention period. Zero means that all copies have a timeline.
	Timelines time.Duration
	// Emptied means that only the newest operation of each copy has a payload. The payloads of the other operations are empty, as
	// after an erasure. They would make up most of the database, and no measured request reads them.
	Emptied bool
}

// tenants returns the number of tenants to which the copies belong.
func (o Options) tenants() int { return max(minTenants, o.Count/instancesPerTenant) }

// interval returns the difference in age between two consecutive copies.
func (o Options) interval() time.Duration {
	if o.Age == 0 {
		return interval
	}

	return o.Age / time.Duration(o.Count)
}

// Copy contains the IDs of an instance and of its newest operation.
type Copy struct {
	Instance, Operation string
}

// Multiply copies the only instance in the database, with all its rows, until there are options.Count instances. It returns the
// copies, oldest first, followed by the original. It fails the test if the database does not contain exactly one instance, or if
// the instance's runtime has not been ordered yet, because each copy needs a runtime ID of its own.
func Multiply(tb testing.TB, db *sqlx.DB, keys *secret.Keyring, options Options) []Copy {
	tb.Helper()

	rows := map[string][]map[string]any{}
	for _, table := range tables() {
		rows[table.name] = read(tb, db, keys, table)
	}

	original := originalOf(tb, rows)
	batch := batch{Options: options, original: original, namespace: uuid.New(), keys: keys}

	if err := batch.fill(tb.Context(), db, rows); err != nil {
		tb.Fatal(err)
	}

	for _, statement := range []string{
		// Without this update, the broker would continue the hash chain after the entries of the original.
		`UPDATE audit_chain_head SET number = (SELECT COALESCE(MAX(number), 0) FROM audit_chain)`,
		// The copies must not cause events.
		`TRUNCATE new_events`,
		// Without this statement, autovacuum would run during a measurement.
		`VACUUM ANALYZE`,
	} {
		if _, err := db.ExecContext(tb.Context(), statement); err != nil {
			tb.Fatalf("%s: %v", statement, err)
		}
	}

	copies := make([]Copy, 0, options.Count)
	newest := firstOperation + len(rows["operations"]) - 1

	for i := range options.Count - 1 {
		values := batch.values(i)
		copies = append(copies, Copy{Instance: values[instanceID], Operation: values[newest]})
	}

	return append(copies, Copy{Instance: original[instanceID], Operation: original[newest]})
}

// Indexes into the values that originalOf returns. The operation IDs start at firstOperation, oldest first. The IDs of the audit
// log entries follow them.
const (
	instanceID = iota
	runtimeID
	shootName
	tenant
	firstOperation
)

// originalOf returns the values that identify the original and its rows. Copies have different values.
func originalOf(tb testing.TB, rows map[string][]map[string]any) (values []string) {
	tb.Helper()

	instances, operations := rows["instances"], rows["operations"]

	if len(instances) != 1 || len(operations) == 0 {
		tb.Fatalf("found %d instances and %d operations, want one instance with at least one operation", len(instances), len(operations))
	}

	for _, column := range []string{"id", "runtime_id", "shoot_name", "global_account_id"} {
		values = append(values, text(instances[0], column))
	}

	for _, row := range slices.Concat(operations, rows["audit"]) {
		values = append(values, text(row, "id"))
	}

	if slices.Contains(values, "") {
		tb.Fatal("the instance is incomplete: its runtime must be ordered")
	}

	return values
}

// values returns the values of a copy, in the order of the original's values. For the same number, it always returns the same values.
func (b batch) values(number int) []string {
	values := make([]string, len(b.original))

	for i := range values {
		id := uuid.NewSHA1(b.namespace, fmt.Appendf(nil, "%d/%d", number, i)).String()

		switch i {
		case shootName:
			values[i] = "c-" + strings.ReplaceAll(id, "-", "")[:shootNameLength]
		case tenant:
			values[i] = fmt.Sprintf("tenant-%03d", number%b.tenants())
		default:
			values[i] = id
		}
	}

	return values
}
