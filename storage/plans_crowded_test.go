package storage_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// fewRows is the maximum number of rows and index entries that a statement for at most 60 operations may read.
const fewRows = 500

// mayExceedFewRows lists the calls that may read more than fewRows, with the reasons.
func mayExceedFewRows() map[string]string {
	return map[string]string{
		"operations.Claim blocked":   "it skips operations that are queued behind others of their instance",
		"operations.Resume":          "it runs once after an outage, and the system may have delayed all operations",
		"operations.QueueDepths":     "it counts all unfinished operations, once per scrape",
		"operations.UnfinishedKinds": "it runs once, when a replica starts",
		"instances.Durations":        "it reads the newest 250 operations of each kind, once a minute in each replica",
	}
}

// crowdedCalls returns the periodic calls of the engine, and the calls by which requests and events change one operation.
func (s stores) crowdedCalls() map[string]call {
	calls := s.operationCalls()
	maps.Copy(calls, s.engineCalls())
	delete(calls, "keyrotation.Rotate") // a rotation reads all rows once for each new key

	calls["operations.Claim blocked"] = s.claim(process.Due{Kind: "blocked", Pending: true})
	calls["operations.ExpirePending none"] = s.expire(filledAt.AddDate(-10, 0, 0))
	calls["operations.Due of one kind"] = s.due(filledAt, "provision")
	calls["operations.Due of other kinds"] = s.due(filledAt, "suspend", "resume")
	calls["operations.Due later"] = s.due(filledAt.AddDate(-10, 0, 0), "provision", "update")

	return calls
}

func (s stores) due(at time.Time, kinds ...string) call {
	return func(ctx context.Context) error {
		_, err := s.operations.Due(ctx, kinds, at)

		return err
	}
}

// TestEngineReadsLittleOfACrowdedTable checks that no call of the engine reads more than fewRows of a table with a hundred
// thousand operations, most of them unfinished. It counts the rows that a plan reads, because even an index scan can read all
// rows. Statements stay prepared, so the test executes each statement with both plans that PostgreSQL can choose: the custom plan
// and the generic plan.
func TestEngineReadsLittleOfACrowdedTable(t *testing.T) {
	large := openLarge(t, crowdedTables())
	calls := large.crowdedCalls()

	for _, name := range slices.Sorted(maps.Keys(calls)) {
		t.Run(name, func(t *testing.T) {
			statements := large.statementsOf(t, calls[name])
			if _, allowed := mayExceedFewRows()[name]; allowed {
				return // only the return of the call matters
			}

			for _, statement := range statements {
				for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
					plan := large.planner.run(t, mode, statement)
					if tables := plan.scanned(); len(tables) > 0 || plan.read() > fewRows {
						t.Errorf("with %s the statement reads %d rows, and scans %q:\n%s\n%v",
							mode, plan.read(), strings.Join(tables, " and "), statement.Text, statement.Args)
					}
				}
			}
		})
	}
}

// run executes a recorded statement again and returns its plan. The transaction first deletes the rows that the call has added,
// which the statement could not add twice, and is rolled back.
func (p planner) run(t *testing.T, mode string, statement storage.PreparedQuery) node {
	t.Helper()

	execute := p.prepare(t, statement)

	p.exec(t, "SET plan_cache_mode = "+mode, "BEGIN", "DELETE FROM operations WHERE id IN ('new', 'next')")
	defer p.exec(t, "ROLLBACK", "RESET plan_cache_mode")

	return p.explain(t, "ANALYZE, TIMING OFF", execute)
}

// read returns the number of rows and index entries that the plan has read, including discarded ones.
func (n node) read() int {
	rows := 0.0
	if n.Table != "" || n.Index != "" {
		rows = (n.Rows + n.Removed + n.Rechecked) * n.Loops
	}

	total := int(rows)
	for _, below := range n.Plans {
		total += below.read()
	}

	return total
}

// large contains the stores of a large PostgreSQL database, and records the statements that they send.
type large struct {
	stores

	planner planner
	sent    *[]storage.PreparedQuery
}

// statementsOf executes a call and returns the distinct statements that it sends.
func (l large) statementsOf(t *testing.T, call call) []storage.PreparedQuery {
	t.Helper()

	*l.sent = nil

	if err := call(t.Context()); err != nil && !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}

	if len(*l.sent) == 0 {
		t.Fatal("the call sends no statement, so it tests nothing")
	}

	return distinct(*l.sent)
}
