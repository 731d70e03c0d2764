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

// fewRows is how many rows and entries of indexes a statement may read where it concerns 60 operations at most.
const fewRows = 500

// readsMuch lists the calls that may read more of a crowded table, with the reason.
func readsMuch() map[string]string {
	return map[string]string{
		"operations.Claim blocked":   "it passes by what waits behind another operation of its instance",
		"operations.Resume":          "once an outage is over, and the system may have held up all that is under way",
		"operations.QueueDepths":     "it counts all that has not ended, once a scrape",
		"operations.UnfinishedKinds": "once, when a replica starts",
	}
}

// crowdedCalls are what the engine does all the time, and what requests and events do to one operation.
func (s stores) crowdedCalls() map[string]call {
	calls := s.operationCalls()
	maps.Copy(calls, s.engineCalls())
	delete(calls, "keyrotation.Rotate") // it reads all rows, once for each new key

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

// TestStatementsOfTheEngineReadLittleWhereNearlyAllWaits runs what the engine does where most of a hundred thousand operations have not
// ended. A plan that reads all of these is found by what it reads: it needs no sequential scan. Statements stay prepared, so both
// plans are tried between which PostgreSQL chooses: that for these arguments and that for any.
func TestStatementsOfTheEngineReadLittleWhereNearlyAllWaits(t *testing.T) {
	large := openLarge(t, crowdedTables())
	calls := large.crowdedCalls()

	for _, name := range slices.Sorted(maps.Keys(calls)) {
		t.Run(name, func(t *testing.T) {
			statements := large.sentBy(t, calls[name])
			if _, excused := readsMuch()[name]; excused {
				return // that it comes to its end is all that is asked of it
			}

			for _, statement := range statements {
				for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
					plan := large.planner.run(t, mode, statement)
					if tables := plan.scanned(); len(tables) > 0 || plan.read() > fewRows {
						t.Errorf("with %s it reads %d rows, and %q from beginning to end:\n%s\n%v",
							mode, plan.read(), strings.Join(tables, " and "), statement.Text, statement.Args)
					}
				}
			}
		})
	}
}

// run runs a statement once more, without what the call has added, and takes back what it did.
func (p planner) run(t *testing.T, mode string, statement storage.PreparedQuery) node {
	t.Helper()

	execute := p.prepare(t, statement)

	p.exec(t, "SET plan_cache_mode = "+mode, "BEGIN", "DELETE FROM operations WHERE id IN ('new', 'next')")
	defer p.exec(t, "ROLLBACK", "RESET plan_cache_mode")

	return p.explain(t, "ANALYZE, TIMING OFF", execute)
}

// read is how many rows and entries of indexes the plan has read, whether it used them or not.
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

// large is a large database, which tells of what is sent to it.
type large struct {
	stores

	planner planner
	sent    *[]storage.PreparedQuery
}

// sentBy makes a call and returns the statements that it sends.
func (l large) sentBy(t *testing.T, call call) []storage.PreparedQuery {
	t.Helper()

	*l.sent = nil

	if err := call(t.Context()); err != nil && !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}

	if len(*l.sent) == 0 {
		t.Fatal("it sends no statement: nothing is shown by this call")
	}

	return different(*l.sent)
}
