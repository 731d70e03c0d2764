package storage_test

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/accounts"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/notifications"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

// mayScan lists the calls that may scan a whole table, with the reasons.
func mayScan() map[string]string {
	const (
		nearlyAll = "it counts nearly every row, and only on request"
		few       = "there are few kinds, plans, platforms and regions: an index would slow down every acceptance, and totals are rarely requested"
		rare      = "operators rarely filter by the column, and the list takes less than 0.1 s: an index would slow down every operation that changes it"
		anywhere  = "such a search reads instances until a page is full, on request: an index of parts of names and IDs would slow down every acceptance"
		changes   = "it compares instances with their newest operations until a page is full, on request, and takes less than a second: an index of the last change would slow down every step"
		none      = "no row has the value: such a list is rare and takes less than 0.1 s"
	)

	return map[string]string{
		"instances.Count ready":           nearlyAll,
		"operations.Count ready":          nearlyAll,
		"operations.Count of a kind":      few,
		"operations.Count of a rare kind": few,
		"operations.Count of no kind":     few,
		"operations.List of no kind":      none,
		"instances.Count of a plan":       few,
		"instances.Count of no plan":      few,
		"instances.Count of a region":     few,
		"instances.Count of a platform":   few,
		"instances.Count of no platform":  few,
		"instances.Count of its region":   few,
		"instances.Count of no region":    few,
		"instances.Usage of all":          "a quota of all instances, or of a plan, reads a small index; the list of the fullest groups is read on request, and once a minute for metrics",
		"instances.Count of a provider":   few,
		"instances.Count of no provider":  few,
		"instances.Count of a kind":       few,
		"instances.Count of a rare kind":  few,
		"instances.Count of a version":    rare,
		"instances.Count shared":          rare,
		"instances.Count expired":         rare,
		"instances.Count changed":         changes,
		"instances.Count changed before":  changes,
		"instances.Count not changed":     changes,
		"instances.Count of a dashboard":  rare,
		"instances.Count of a problem":    changes,
		"instances.Count of a service":    few,
		"instances.Count of no service":   few,
		"instances.List changed":          changes,
		"instances.List changed before":   changes,
		"instances.List not changed":      changes,
		"instances.List of a dashboard":   rare,
		"instances.List of a problem":     changes,
		"instances.List of no service":    none,
		"instances.Count of all names":    nearlyAll,
		"instances.Count found anywhere":  anywhere,
		"instances.Count found nowhere":   anywhere,
		"instances.List found anywhere":   anywhere,
		"instances.List found nowhere":    anywhere,
		"instances.Count ready, by plan":  nearlyAll,
		"instances.List of a rare kind":   rare,
		"instances.List of a version":     rare,
		"instances.List of no provider":   none,
		"instances.List shared":           rare,
		"instances.List expired":          rare,
		"instances.List of no plan":       none,
		"instances.List of no region":     none,
		"instances.List of no platform":   none,
		"runtimes.Count of a region":      few,
		"runtimes.Count of no region":     few,
		"operations.Count of a region":    few,
		"runtimes.List of no region":      none,
		"instances.FeedCursor":            "the table has one row",
		"runtimes.Tenants":                "it reads the tenants of all runtimes, once for a report of differences",
		"accounts.Abandoned":              "it compares all claims, uses and instances, every few minutes",
		"accounts.Track":                  "it compares all dirty accounts, which are few, every few minutes",
		"accounts.Cleanups":               "it lists all dirty accounts, which are few",
		"accounts.List":                   "it lists both tables, only on request",
		"leftovers.Count":                 nearlyAll,
		"leftovers.CountSteps":            "it counts all rows, which are few: something is wrong with each of them",
		"orchestrations.List ready":       "its total counts all orchestrations, which are few",
		"notifications.Hold":              "the table notification_lease has one row",
		"notifications.ReturnLease":       "the table notification_lease has one row",
		"notifications.Position":          "the table notification_lease has one row",
		"notifications.Add":               "the table notification_lease has one row",
		"webhooks.List":                   "there are at most 50 webhooks",
		"webhooks.Create":                 "the table events_head has one row",
		"webhooks.Add":                    "the table events_head has one row",
		"webhooks.Enable":                 "the table events_head has one row",
		"webhooks.Backlog":                "it counts what is not delivered, once per scrape",
		"eventlog.Head":                   "the table events_head has one row",
		"eventlog.Publish":                "the table events_head has one row",
		"eventlog.RemoveBefore":           "the table events_head has one row",
		"eventlog.CountErasable":          "the table new_events has the events of the last second",
		"eventlog.Erase":                  "the table new_events has the events of the last second",
		"auditlog.List of no user":        none,
		"auditlog.Remove with an archive": "the table audit_chain_head has one row",
		"auditlog.Pass":                   "the table audit_chain_head has one row",
		"auditlog.ChainHead":              "the table audit_chain_head has one row",
		"auditlog.ChainPage of records":   "the table audit_chain_head has one row",
		"auditlog.ChainPage of entries":   "the table audit_chain_head has one row",
		"auditlog.ChainPage of rows":      "the table audit_chain_head has one row",
		"auditlog.List of no action":      none,

		"leftovers.OfInstances":             "leftovers are few: something is wrong with each of them",
		"orchestrations.NotEnded":           "orchestrations are few",
		"orchestrations.UnfinishedUpgrades": "orchestrations are few",
	}
}

// TestEveryStatementUsesAnIndex runs every method of the stores on a large PostgreSQL database, records the statements, and
// explains them. No statement may scan a whole table, except for the calls in mayScan.
func TestEveryStatementUsesAnIndex(t *testing.T) {
	large := openLarge(t, append(fillTables(), windowTables()...))
	calls := large.calls()

	for _, name := range slices.Sorted(maps.Keys(calls)) {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			statements := large.statementsOf(t, calls[name])
			t.Logf("%d statements, %s", len(statements), time.Since(began))

			if want := listStatements(name); want > 0 && len(*large.sent) != want {
				t.Errorf("the list needs %d statements, want %d regardless of its length", len(*large.sent), want)
			}

			for _, statement := range statements {
				tables := large.planner.readWhole(t, statement)
				if _, allowed := mayScan()[name]; len(tables) > 0 && !allowed {
					t.Errorf("the statement scans %s: add an index or, if a scan is right, the call with its reason to mayScan:\n%s\n%v", strings.Join(tables, " and "), statement.Text, statement.Args)
				}
			}
		})
	}

	everyMethod(t, calls, map[string]reflect.Type{
		"operations": reflect.TypeFor[*operations.Store](), "instances": reflect.TypeFor[*instances.Store](), "runtimes": reflect.TypeFor[*runtimes.Store](),
		"bindings": reflect.TypeFor[*bindings.Store](),
		"auditlog": reflect.TypeFor[*auditlog.Store](), "endpoints": reflect.TypeFor[*endpoints.Store](), "accounts": reflect.TypeFor[*accounts.Store](),
		"leftovers": reflect.TypeFor[*leftovers.Store](), "objects": reflect.TypeFor[*outsideobjects.Store](),
		"orchestrations": reflect.TypeFor[*orchestrations.Store](),
		"notifications":  reflect.TypeFor[*notifications.Store](), "events": reflect.TypeFor[*instanceevents.Store](),
		"eventlog": reflect.TypeFor[*eventlog.Store](), "webhooks": reflect.TypeFor[*webhooks.Store](),
	})
}

// openLarge returns the stores of a new PostgreSQL database after executing the filling statements.
func openLarge(t *testing.T, filling []string) large {
	t.Helper()

	config := storagetest.Postgres(t)

	var sent []storage.PreparedQuery

	db, err := storage.OpenRecording(config, func(statement storage.PreparedQuery) { sent = append(sent, statement) })
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = db.Close() })

	stores := openAll(t, db, storagetest.Keys(t))
	stores.archive = t.TempDir()
	fill(t, db, filling)

	return large{stores: stores, planner: openPlanner(t, config), sent: &sent}
}

func listStatements(name string) int {
	switch {
	case strings.HasPrefix(name, "auditlog.List "):
		return 2 // one for each source
	case strings.HasPrefix(name, "orchestrations.List "):
		return 2 // the page and the total
	case strings.Contains(name, ".List "):
		return 1
	default:
		return 0
	}
}

// distinct returns the statements without duplicates. Statements that differ only in their arguments are duplicates.
func distinct(sent []storage.PreparedQuery) []storage.PreparedQuery {
	seen := map[string]bool{}

	return slices.DeleteFunc(slices.Clone(sent), func(statement storage.PreparedQuery) bool {
		before := seen[statement.Text]
		seen[statement.Text] = true

		return before
	})
}

// everyMethod fails the test unless calls covers every store method that sends a statement. sendsNothing lists the other methods.
func everyMethod(t *testing.T, calls map[string]call, stores map[string]reflect.Type) {
	t.Helper()

	covered := map[string]bool{}
	for name := range calls {
		method, _, _ := strings.Cut(name, " ")
		covered[method] = true
	}

	for name, store := range stores {
		for i := range store.NumMethod() {
			method := name + "." + store.Method(i).Name
			if sendsNothing := []string{"Reader", "OnEnded", "AtEnd", "Retention", "Record", "OpenRecord", "Chain", "Delivery", "ArchiveTo", "KeepFor", "OperationRetention"}; !slices.Contains(sendsNothing, store.Method(i).Name) && !covered[method] {
				t.Errorf("no call covers the plans of %s: add one to calls in plans_calls_test.go", method)
			}
		}
	}
}

// planner is a connection that explains statements.
type planner struct{ *sqlx.Conn }

func openPlanner(t *testing.T, config storage.Config) planner {
	t.Helper()

	db := sqlx.MustOpen("postgres", dsn(config))

	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = errors.Join(conn.Close(), db.Close()) })

	return planner{conn}
}

// uses is the number of executions after which PostgreSQL has chosen between the custom plan and the generic plan.
const uses = 7

// readWhole lists the tables that a prepared statement scans completely, at its first or at a later execution.
func (p planner) readWhole(t *testing.T, statement storage.PreparedQuery) []string {
	t.Helper()

	execute := p.prepare(t, statement)

	var tables []string

	for range uses {
		tables = append(tables, p.explain(t, "VERBOSE FALSE", execute).scanned()...)
	}

	slices.Sort(tables)

	return slices.Compact(tables)
}

// prepare prepares a statement and returns the EXECUTE statement with its arguments.
func (p planner) prepare(t *testing.T, statement storage.PreparedQuery) string {
	t.Helper()

	arguments := make([]string, 0, len(statement.Args))
	for _, value := range statement.Args {
		arguments = append(arguments, literal(value))
	}

	execute := "EXECUTE plan"
	if len(arguments) > 0 {
		execute += "(" + strings.Join(arguments, ", ") + ")"
	}

	p.exec(t, "DEALLOCATE ALL", "PREPARE plan AS "+statement.Text)

	return execute
}

func (p planner) exec(t *testing.T, statements ...string) {
	t.Helper()

	for _, statement := range statements {
		if _, err := p.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// explain returns the plan of a prepared statement.
func (p planner) explain(t *testing.T, options, execute string) node {
	t.Helper()

	var text string
	if err := p.GetContext(t.Context(), &text, "EXPLAIN ("+options+", FORMAT JSON) "+execute); err != nil {
		t.Fatalf("explaining %s: %v", execute, err)
	}

	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) != 1 {
		t.Fatalf("reading the plan %s: %v", text, err)
	}

	return plans[0].Plan
}

// node is a node of a plan, with its children in Plans.
type node struct {
	Type  string `json:"Node Type"`
	Table string `json:"Relation Name"`
	Index string `json:"Index Name"`
	Plans []node

	// A node has read (Rows + Removed + Rechecked) * Loops rows. In each loop it returned Rows rows and discarded the
	// others.
	Rows      float64 `json:"Actual Rows"`
	Removed   float64 `json:"Rows Removed by Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`
	Loops     float64 `json:"Actual Loops"`
}

func (n node) scanned() []string {
	var tables []string
	if n.Type == "Seq Scan" {
		tables = append(tables, n.Table)
	}

	for _, below := range n.Plans {
		tables = append(tables, below.scanned()...)
	}

	return tables
}

// literal returns an argument as an SQL literal.
func literal(value driver.Value) string {
	switch value := value.(type) {
	case nil:
		return "NULL"
	case time.Time:
		return pq.QuoteLiteral(value.Format(time.RFC3339Nano))
	case []byte:
		return pq.QuoteLiteral(string(value))
	default:
		return pq.QuoteLiteral(fmt.Sprint(value))
	}
}
