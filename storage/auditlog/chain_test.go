package auditlog_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// chainer returns the Chainer of a new replica with the given clock.
func (b fixture) chainer(clock *clocktesting.FakeClock) *auditlog.Chainer {
	return b.entries.Chain(auditlog.ChainOptions{Clock: clock, Log: logging.Discard(), Metrics: prometheus.NewRegistry()})
}

// pass calls Pass of the chainer, which must succeed.
func (b fixture) pass(chainer *auditlog.Chainer) {
	b.Helper()

	if err := chainer.Pass(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// verify reads all pages of the chain, and verifies them as if the current time were now.
func (b fixture) verify(now time.Time, sinceHead string) chain.Report {
	b.Helper()

	verifier := chain.NewVerifier(chain.Options{Now: now, MaxUnchained: 10 * time.Minute, SinceHead: sinceHead})

	for cursor := ""; ; {
		page, err := b.entries.ChainPage(b.Context(), cursor, 3)
		if err != nil {
			b.Fatal(err)
		}

		for _, record := range page.Records {
			verifier.Add(record)
		}

		for _, row := range page.Unchained {
			verifier.AddUnchained(row)
		}

		if cursor = page.Next; cursor == "" {
			return verifier.Finish(page.Head)
		}
	}
}

// exec executes a statement with the rights of the tables' owner.
func (b fixture) exec(statement string) {
	b.Helper()

	if _, err := storage.Exec(b.Context(), b.db.Writer(), statement); err != nil {
		b.Fatalf("%s: %v", statement, err)
	}
}

// dropTriggers removes all triggers of the audit log.
func (b fixture) dropTriggers() {
	b.Helper()

	query, on := `SELECT name || ' ' || tbl_name FROM sqlite_master WHERE type = 'trigger'`, ""
	if b.db.Driver() == storage.DriverPostgres {
		query, on = `SELECT tgname || ' ' || tgrelid::regclass FROM pg_trigger WHERE NOT tgisinternal`, " ON "
	}

	triggers, err := storage.Select[string](b.Context(), b.db.Reader(), query)
	if err != nil || len(triggers) < 8 {
		b.Fatalf("want the triggers, got %v, %v", triggers, err)
	}

	for _, trigger := range triggers {
		name, table, _ := strings.Cut(trigger, " ")
		if on != "" {
			name += on + table
		}

		b.exec(`DROP TRIGGER ` + name)
	}
}

// fillChain adds three operations and three entries, with an erasure of the account a1, and chains them.
func (b fixture) fillChain() (now time.Time) {
	b.Helper()

	alice := auditlog.Actor{User: "cf", Originator: "alice", Address: "10.0.0.1"}

	o1 := b.accept(1, process.New{Kind: "provision", InstanceID: "i1", Tenant: "a1"}, auditlog.Entry{By: alice})
	b.finish(2, o1)
	b.accept(3, process.New{Kind: "update", InstanceID: "i2", Tenant: "a2"}, auditlog.Entry{By: alice})
	b.accept(4, process.New{Kind: "update", InstanceID: "i3", Tenant: "a2"}, auditlog.Entry{By: alice})
	e5 := b.add(5, auditlog.Entry{Action: auditlog.ActionBind, InstanceID: "i1", By: alice, Status: http.StatusConflict})
	b.add(6, auditlog.Entry{Action: auditlog.ActionCancel, OperationID: "o03", By: alice, Status: http.StatusAccepted})
	b.add(7, auditlog.Entry{Action: "provision", Account: "a2", By: alice, Status: http.StatusBadRequest})

	clock := clocktesting.NewFakeClock(began.Add(20 * time.Minute))
	chainer := b.chainer(clock)
	b.pass(chainer)

	erasure := b.add(21, auditlog.Entry{
		Action: auditlog.ActionErase, Account: "a1", Status: http.StatusOK, By: auditlog.Actor{User: "root"},
		After: auditlog.Fields{"operations": 1, "auditEntries": 1},
	})
	b.eraseRows(e5.ID, o1.ID, erasure.ID)

	clock.SetTime(began.Add(22 * time.Minute))
	b.pass(chainer)

	return clock.Now()
}

// eraseRows erases an entry and an operation.
func (b fixture) eraseRows(entry, operation, erasure string) {
	b.Helper()

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		if err := b.entries.Erase(b.Context(), tx, []string{entry}, erasure); err != nil {
			return err
		}

		return b.operations.Erase(b.Context(), tx, []string{operation}, erasure, began)
	}); err != nil {
		b.Fatal(err)
	}
}

func TestChainCoversEntriesAndOperationsAndSurvivesErasures(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		report := b.verify(b.fillChain(), "")

		want := chain.Report{
			Valid: true, Problems: []chain.Problem{}, Records: 7, ChainedSince: "2020-01-02T03:24:05.000000Z", Older: 6,
			Head: report.Head, Erased: 2,
			Erasures: []chain.Erasure{{
				EntryID: "e21", At: "2020-01-02T03:25:05.000000Z", By: "root", Account: "a1", Operations: 1, Entries: 1,
			}},
		}
		if diff := cmp.Diff(want, report); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}

		salts, err := storage.Select[string](b.Context(), b.db.Reader(), `SELECT id FROM audit_chain WHERE salt = '' ORDER BY id`)
		if diff := cmp.Diff([]string{"e05", "o01"}, salts); diff != "" || err != nil {
			b.Errorf("%v, only erased rows lose their salt: -want +got\n%s", err, diff)
		}
	})
}

// TestTampering changes each column, and the order of rows, with the rights of the tables' owner. The verification must name the
// row.
func TestTampering(t *testing.T) {
	const swap = `UPDATE audit_chain SET number = CASE number WHEN 103 THEN 4 ELSE 3 END WHERE number IN (103, 104)`

	cases := map[string]struct {
		statements  []string
		id, problem string
	}{
		"id of an entry":              {[]string{`UPDATE audit SET id = 'x' WHERE id = 'e06'`}, "e06", chain.Missing},
		"time of an entry":            {[]string{`UPDATE audit SET at = '2020-01-02T03:10:06.000000Z' WHERE id = 'e06'`}, "e06", chain.Changed},
		"action of an entry":          {[]string{`UPDATE audit SET action = 'x' WHERE id = 'e06'`}, "e06", chain.Changed},
		"instance of an entry":        {[]string{`UPDATE audit SET instance_id = 'x' WHERE id = 'e06'`}, "e06", chain.Changed},
		"operation of an entry":       {[]string{`UPDATE audit SET operation_id = 'x' WHERE id = 'e06'`}, "e06", chain.Changed},
		"user of an entry":            {[]string{`UPDATE audit SET ordered_by = 'x' WHERE id = 'e06'`}, "e06", chain.Changed},
		"status of an entry":          {[]string{`UPDATE audit SET status = 1 WHERE id = 'e06'`}, "e06", chain.Changed},
		"fields of an entry":          {[]string{`UPDATE audit SET entry = '{}' WHERE id = 'e06'`}, "e06", chain.Changed},
		"retention of an entry":       {[]string{`UPDATE audit SET keep_until = '2020-01-03T03:10:05.000000Z' WHERE id = 'e06'`}, "e06", chain.Changed},
		"account of an entry":         {[]string{`UPDATE audit SET account = 'x' WHERE id = 'e06'`}, "e06", chain.Changed},
		"moved bytes":                 {[]string{`UPDATE audit SET instance_id = operation_id, operation_id = '' WHERE id = 'e06'`}, "e06", chain.Changed},
		"fields of an erased entry":   {[]string{`UPDATE audit SET entry = '{"by":{}}' WHERE id = 'e05'`}, "e05", chain.Changed},
		"user of an erased entry":     {[]string{`UPDATE audit SET ordered_by = 'x' WHERE id = 'e05'`}, "e05", chain.Changed},
		"status of an erased entry":   {[]string{`UPDATE audit SET status = 1 WHERE id = 'e05'`}, "e05", chain.Changed},
		"erasure of an erased entry":  {[]string{`UPDATE audit SET erased_by = '' WHERE id = 'e05'`}, "e05", chain.Changed},
		"unknown erasure":             {[]string{`UPDATE audit SET ordered_by = '', entry = '{}', erased_by = 'x' WHERE id = 'e06'`}, "e06", chain.Changed},
		"erased without an erasure":   {[]string{`UPDATE audit SET ordered_by = '', entry = '{}' WHERE id = 'e06'`}, "e06", chain.Changed},
		"one more than was erased":    {[]string{`UPDATE audit SET ordered_by = '', entry = '{}', erased_by = 'e21' WHERE id = 'e06'`}, "e06", chain.Changed},
		"erasure of another account":  {[]string{`UPDATE audit SET ordered_by = '', entry = '{}', erased_by = 'e21' WHERE id = 'e07'`}, "e07", chain.Changed},
		"number of an erasure":        {[]string{`UPDATE audit SET entry = '{"after":{"operations":9,"auditEntries":9}}' WHERE id = 'e21'`}, "e21", chain.Changed},
		"id of an operation":          {[]string{`UPDATE operations SET id = 'x' WHERE id = 'o03'`}, "o03", chain.Missing},
		"kind of an operation":        {[]string{`UPDATE operations SET kind = 'x' WHERE id = 'o03'`}, "o03", chain.Changed},
		"instance of an operation":    {[]string{`UPDATE operations SET instance_id = 'x' WHERE id = 'o03'`}, "o03", chain.Changed},
		"predecessor of an operation": {[]string{`UPDATE operations SET predecessor_id = 'x' WHERE id = 'o03'`}, "o03", chain.Changed},
		"time of an operation":        {[]string{`UPDATE operations SET created_at = '2020-01-02T03:10:06.000000Z' WHERE id = 'o03'`}, "o03", chain.Changed},
		"tenant of an operation":      {[]string{`UPDATE operations SET tenant = 'x' WHERE id = 'o03'`}, "o03", chain.Changed},
		"user of an operation":        {[]string{`UPDATE operations SET ordered_by = 'x' WHERE id = 'o03'`}, "o03", chain.Changed},
		"entry of an operation":       {[]string{`UPDATE operations SET audit = '' WHERE id = 'o03'`}, "o03", chain.Changed},
		"erasure of an operation":     {[]string{`UPDATE operations SET ordered_by = '', audit = '{}', erased_by = 'e21' WHERE id = 'o03'`}, "o03", chain.Changed},
		"deleted entry":               {[]string{`DELETE FROM audit WHERE id = 'e06'`}, "e06", chain.Missing},
		"deleted operation":           {[]string{`DELETE FROM operations WHERE id = 'o03'`}, "o03", chain.Missing},
		"deleted entry with record":   {[]string{`DELETE FROM audit WHERE id = 'e06'`, `DELETE FROM audit_chain WHERE id = 'e06'`}, "e07", chain.Missing},
		"deleted entries":             {[]string{`DELETE FROM audit`}, "e05", chain.Missing},
		"inserted entry":              {[]string{`INSERT INTO audit (id, at, action, instance_id, operation_id, ordered_by, status, entry) VALUES ('new', '2020-01-02T03:10:05.000000Z', 'x', '', '', '', 1, '{}')`}, "new", chain.NotChained},
		"swapped entries":             {[]string{`UPDATE audit SET id = 'x' WHERE id = 'e06'`, `UPDATE audit SET id = 'e06' WHERE id = 'e07'`, `UPDATE audit SET id = 'e07' WHERE id = 'x'`}, "e06", chain.Changed},
		"swapped records":             {[]string{`UPDATE audit_chain SET number = number + 100 WHERE number IN (3, 4)`, swap}, "e05", chain.Reordered},
		"truncated entries":           {[]string{`DELETE FROM audit WHERE id = 'e21'`, `DELETE FROM audit_chain WHERE id = 'e21'`}, "", chain.Truncated},
		"truncated chain":             {[]string{`DELETE FROM audit_chain`}, "", chain.Truncated},
		"number of a record":          {[]string{`UPDATE audit_chain SET number = 50 WHERE id = 'e21'`}, "e21", chain.Missing},
		"time of a record":            {[]string{`UPDATE audit_chain SET chained_at = '2020-01-02T03:10:05.000000Z' WHERE id = 'e06'`}, "e06", chain.Changed},
		"source of a record":          {[]string{`UPDATE audit_chain SET source = 'operation' WHERE id = 'e06'`}, "e06", chain.Changed},
		"id of a record":              {[]string{`UPDATE audit_chain SET id = 'x' WHERE id = 'e06'`}, "x", chain.Changed},
		"retention of a record":       {[]string{`UPDATE audit_chain SET keep_until = '2020-01-03T03:10:05.000000Z' WHERE id = 'e06'`}, "e06", chain.Changed},
		"retention of both": {[]string{
			`UPDATE audit SET keep_until = '2020-01-03T03:10:05.000000Z' WHERE id = 'e06'`,
			`UPDATE audit_chain SET keep_until = '2020-01-03T03:10:05.000000Z' WHERE id = 'e06'`,
		}, "e06", chain.Changed},
		"salt of a record": {[]string{`UPDATE audit_chain SET salt = '' WHERE id = 'e06'`}, "e06", chain.Changed},
		"digest of a user": {[]string{`UPDATE audit_chain SET personal = '' WHERE id = 'e06'`}, "e06", chain.Changed},
		"digest of a row":  {[]string{`UPDATE audit_chain SET content = '' WHERE id = 'e06'`}, "e06", chain.Changed},
		"hash of a record": {[]string{`UPDATE audit_chain SET hash = '' WHERE id = 'e06'`}, "e06", chain.Changed},
	}

	onEach(t, 0, func(b fixture) {
		now := b.fillChain()
		b.dropTriggers()

		tables := []string{"audit", "operations", "audit_chain", "audit_chain_head"}
		for _, table := range tables {
			b.exec(`CREATE TABLE saved_` + table + ` AS SELECT * FROM ` + table)
		}

		for name, test := range cases {
			for _, statement := range test.statements {
				b.exec(statement)
			}

			report := b.verify(now, "")
			if report.Valid || len(report.Problems) == 0 || report.Problems[0].ID != test.id || report.Problems[0].Problem != test.problem {
				b.Errorf("%s: want %s %s, got %+v", name, test.id, test.problem, report.Problems)
			}

			for _, table := range tables {
				b.exec(`DELETE FROM ` + table)
				b.exec(`INSERT INTO ` + table + ` SELECT * FROM saved_` + table)
			}

			if report := b.verify(now, ""); !report.Valid {
				b.Fatalf("%s: the test does not restore the rows: %+v", name, report.Problems)
			}
		}
	})
}

// TestTruncationIsDetectedByTheAnchor removes the last rows with their records and resets the head, as the database's owner can.
func TestTruncationIsDetectedByTheAnchor(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		now := b.fillChain()
		anchor := b.verify(now, "").Head.Hash

		b.add(23, auditlog.Entry{Action: auditlog.ActionAccess})
		b.pass(b.chainer(clocktesting.NewFakeClock(began.Add(24 * time.Minute))))

		if report := b.verify(now, anchor); !report.Valid || report.Since == nil || *report.Since != 1 {
			b.Errorf("want one record since the anchor, got %+v", report)
		}

		b.dropTriggers()

		for _, statement := range []string{
			`DELETE FROM audit WHERE id IN ('e21', 'e23')`, `DELETE FROM audit_chain WHERE number > 6`,
			`UPDATE audit_chain_head SET number = 6, hash = (SELECT hash FROM audit_chain WHERE number = 6)`,
		} {
			b.exec(statement)
		}

		report := b.verify(now, anchor)
		if report.Valid || report.Problems[0].Problem != chain.Truncated {
			b.Errorf("want a truncated chain, got %+v", report.Problems)
		}
	})
}

func TestDatabaseProtectsTheChain(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		b.fillChain()

		statements := []string{
			`DELETE FROM audit_chain`, `DELETE FROM audit_chain_head`, `UPDATE audit_chain SET salt = '' WHERE id = 'e06'`,
			`UPDATE audit_chain SET salt = '', hash = '' WHERE id = 'e05'`, `UPDATE audit_chain SET number = 100 WHERE id = 'e06'`,
			`UPDATE audit_chain SET salt = 'x' WHERE id = 'e05'`, `UPDATE audit_chain SET salt = '', number = NULL WHERE id = 'e05'`,
		}
		if b.db.Driver() == storage.DriverPostgres {
			statements = append(statements, `TRUNCATE audit_chain`, `TRUNCATE audit_chain_head`)
		} else {
			statements = append(statements, `INSERT OR REPLACE INTO audit_chain SELECT * FROM audit_chain`,
				`INSERT OR REPLACE INTO audit_chain_head SELECT * FROM audit_chain_head`)
		}

		for _, statement := range statements {
			if _, err := storage.Exec(b.Context(), b.db.Writer(), statement); err == nil || !strings.Contains(err.Error(), "append-only") {
				b.Errorf("%s: want an error that the audit log is append-only, got %v", statement, err)
			}
		}
	})
}

// TestChainYieldsToRequests checks that the chain waits while requests are waiting, but not longer than a minute.
func TestChainYieldsToRequests(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		b.add(1, auditlog.Entry{Action: auditlog.ActionAccess})

		clock := clocktesting.NewFakeClock(began.Add(time.Hour))
		chainer := b.entries.Chain(auditlog.ChainOptions{
			Clock: clock, Log: logging.Discard(), Metrics: prometheus.NewRegistry(), Busy: func() bool { return true },
		})

		for step, test := range []struct {
			wait    time.Duration
			chained bool
		}{{0, false}, {59 * time.Second, false}, {time.Second, true}} {
			clock.Step(test.wait)
			b.pass(chainer)

			if head, err := b.entries.ChainHead(b.Context()); err != nil || head.Number > 0 != test.chained {
				b.Errorf("step %d: want records: %t, got head %+v, %v", step, test.chained, head, err)
			}
		}
	})
}

// TestYieldingDelaysTheWidePass checks that a call of Pass that yields to requests does not count as the call that goes back by
// longestDelay, which finds rows with older times.
func TestYieldingDelaysTheWidePass(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		busy := false
		clock := clocktesting.NewFakeClock(began.Add(5 * time.Minute))
		chainer := b.entries.Chain(auditlog.ChainOptions{
			Clock: clock, Log: logging.Discard(), Metrics: prometheus.NewRegistry(), Busy: func() bool { return busy },
		})

		b.add(5, auditlog.Entry{Action: auditlog.ActionAccess})
		b.pass(chainer)
		b.add(4, auditlog.Entry{Action: auditlog.ActionAccess}) // committed late

		clock.Step(50 * time.Second)
		b.pass(chainer)

		busy = true

		clock.Step(10 * time.Second) // going back by longestDelay is due
		b.pass(chainer)

		busy = false

		clock.Step(2 * time.Second)
		b.pass(chainer)

		if head, err := b.entries.ChainHead(b.Context()); err != nil || head.Number != 2 {
			b.Errorf("want a record of the older row, got head %+v, %v", head, err)
		}
	})
}

// TestReplicasShareTheChain runs two replicas that chain the same rows. The second one takes over when the lease of the first one
// has expired.
func TestReplicasShareTheChain(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		clock := clocktesting.NewFakeClock(began.Add(time.Hour))
		first, second := b.chainer(clock), b.chainer(clock)

		b.add(1, auditlog.Entry{Action: auditlog.ActionAccess})
		b.pass(first)
		b.add(2, auditlog.Entry{Action: auditlog.ActionAccess})
		b.pass(second)

		if report := b.verify(clock.Now(), ""); report.Records != 1 || report.ProblemCount != 1 {
			b.Errorf("want the second entry unchained as long as the first replica has the lease, got %+v", report)
		}

		clock.Step(time.Minute) // the first replica was killed
		b.pass(second)
		b.add(3, auditlog.Entry{Action: auditlog.ActionAccess})
		b.pass(first)
		b.pass(second)

		if report := b.verify(clock.Now(), ""); !report.Valid || report.Records != 3 {
			b.Errorf("want a valid chain of 3 records, got %+v", report)
		}
	})
}

// TestLateCommitsAreChained adds a row that is older than the newest chained row, as a slow transaction does. A row with a time
// in the future must not hide later rows.
func TestLateCommitsAreChained(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		clock := clocktesting.NewFakeClock(began.Add(10 * time.Minute))
		chainer := b.chainer(clock)

		b.add(10, auditlog.Entry{Action: auditlog.ActionAccess})
		b.add(600, auditlog.Entry{Action: auditlog.ActionAccess})
		b.pass(chainer)
		b.add(8, auditlog.Entry{Action: auditlog.ActionAccess})
		clock.Step(time.Minute)
		b.add(11, auditlog.Entry{Action: auditlog.ActionAccess})
		b.pass(chainer)

		if report := b.verify(clock.Now(), ""); !report.Valid || report.Records != 4 {
			b.Errorf("want a valid chain of 4 records, got %+v", report)
		}
	})
}

// TestVeryLateCommitsAreChained adds rows that are later than the usual search expects, as a replica with a lagging clock does. They
// follow so many rows that the search for them needs two pages of a source. Rows with a time of more than an hour ago stay without
// a record, because somebody may have forged them.
func TestVeryLateCommitsAreChained(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		clock := clocktesting.NewFakeClock(began.Add(100 * time.Minute))
		chainer := b.chainer(clock)

		for batch := range 5 { // the chainer would wait after a batch of 250 rows
			b.exec(fmt.Sprintf(`INSERT INTO audit (id, at, action, instance_id, operation_id, ordered_by, status, entry)
				WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 240)
				SELECT 'many-%d-' || number, '2020-01-02T04:04:05.000000Z', 'access', '', '', '', 200, '{}' FROM numbers`, batch))
			b.pass(chainer)
		}

		b.accept(99, process.New{Kind: "update", InstanceID: "i1"}, auditlog.Entry{})
		b.add(100, auditlog.Entry{Action: auditlog.ActionAccess})
		b.pass(chainer)

		b.add(39, auditlog.Entry{Action: auditlog.ActionAccess}) // too old
		b.add(90, auditlog.Entry{Action: auditlog.ActionAccess})
		b.accept(45, process.New{Kind: "update", InstanceID: "i2"}, auditlog.Entry{})

		for range 5 { // the first search, and those of both pages of entries and of the page of operations
			clock.Step(10 * time.Minute)
			b.pass(chainer)
		}

		report := b.verify(clock.Now(), "")
		if report.ProblemCount != 1 || report.Problems[0].ID != "e39" || report.Problems[0].Problem != chain.NotChained || report.Records != 1204 {
			b.Errorf("want all rows of the last hour in the chain, and the older one not: got %d records, %+v", report.Records, report.Problems)
		}
	})
}

// TestRestoredOperationsAreChained inserts operations with old times, as a restore of lost rows does. They are chained only if
// the audit log contains an entry for the restore.
func TestRestoredOperationsAreChained(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		clock := clocktesting.NewFakeClock(began.Add(10 * time.Hour))
		chainer := b.chainer(clock)

		for minute := 590; minute < 600; minute++ {
			b.add(minute, auditlog.Entry{Action: auditlog.ActionAccess})
		}

		b.accept(598, process.New{Kind: "update", InstanceID: "i9"}, auditlog.Entry{})
		b.pass(chainer)
		b.accept(1, process.New{Kind: "provision", InstanceID: "i1"}, auditlog.Entry{})
		b.accept(2, process.New{Kind: "provision", InstanceID: "i2"}, auditlog.Entry{})
		b.accept(600, process.New{Kind: "update", InstanceID: "i1"}, auditlog.Entry{})
		b.add(601, auditlog.Entry{Action: auditlog.ActionRestore, InstanceID: "i1", Status: http.StatusOK})
		b.accept(3, process.New{Kind: "provision", InstanceID: "i3"}, auditlog.Entry{})
		b.add(602, auditlog.Entry{Action: auditlog.ActionAdopt, InstanceID: "i3", Status: http.StatusOK})
		clock.Step(4 * time.Minute)
		b.pass(chainer)

		report := b.verify(clock.Now(), "")
		if report.ProblemCount != 1 || report.Problems[0].ID != "o02" || report.Problems[0].Problem != chain.NotChained || report.Records != 16 {
			b.Errorf("want the restored operations in the chain, and the forged one not: got %+v", report)
		}
	})
}

// TestSaltsOfConcurrentErasuresAreRemoved simulates an erasure that starts before the record of its row is added, so that its trigger finds
// no record, and that commits after the next wide pass.
func TestSaltsOfConcurrentErasuresAreRemoved(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		clock := clocktesting.NewFakeClock(began.Add(30 * time.Minute))
		chainer := b.chainer(clock)
		b.pass(chainer)

		b.fillRace()
		b.pass(chainer)
		b.exec(map[string]string{
			storage.DriverPostgres: `ALTER TABLE audit DISABLE TRIGGER audit_salt_erased`, storage.DriverSQLite: `DROP TRIGGER audit_salt_erased`,
		}[b.db.Driver()])

		clock.Step(2 * time.Minute)
		b.pass(chainer)
		b.eraseRows("e01", "o02", "e03")

		clock.Step(2 * time.Minute)
		b.pass(chainer)

		salts, err := storage.Select[string](b.Context(), b.db.Reader(), `SELECT id FROM audit_chain WHERE salt <> ''`)
		if diff := cmp.Diff([]string{"e03"}, salts); diff != "" || err != nil {
			b.Errorf("%v, rows with a salt: -want +got\n%s", err, diff)
		}

		if report := b.verify(clock.Now(), ""); !report.Valid {
			b.Errorf("the chain is invalid: %+v", report.Problems)
		}
	})
}

// fillRace adds an entry and an operation that can be erased.
func (b fixture) fillRace() {
	b.add(1, auditlog.Entry{Action: auditlog.ActionBind, InstanceID: "i1", By: auditlog.Actor{User: "alice"}})
	b.finish(2, b.accept(2, process.New{Kind: "provision", InstanceID: "i1", Tenant: "a1"}, auditlog.Entry{By: auditlog.Actor{User: "alice"}}))
	b.add(3, auditlog.Entry{
		Action: auditlog.ActionErase, Account: "a1", Status: http.StatusOK, After: auditlog.Fields{"operations": 1, "auditEntries": 1},
	})
}

// TestRemovedEntriesStayVerifiable removes entries after their retention period. Their records stay.
func TestRemovedEntriesStayVerifiable(t *testing.T) {
	onEach(t, 24*time.Hour, func(b fixture) {
		clock := clocktesting.NewFakeClock(began.Add(30 * time.Minute))

		b.add(1, auditlog.Entry{Action: auditlog.ActionAccess, By: auditlog.Actor{User: "alice"}})
		b.add(2, auditlog.Entry{Action: auditlog.ActionAccess, By: auditlog.Actor{User: "alice"}})
		b.pass(b.chainer(clock))

		if removed, err := b.entries.Remove(b.Context(), began.Add(24*time.Hour+90*time.Second), 10); removed != 1 || err != nil {
			b.Fatalf("want one removed entry, got %d, %v", removed, err)
		}

		if report := b.verify(began.Add(25*time.Hour), ""); !report.Valid || report.Removed != 1 {
			b.Errorf("want a valid chain with a removed row, got %+v", report)
		}

		if report := b.verify(began.Add(time.Hour), ""); report.Valid || report.Problems[0].Problem != chain.Missing {
			b.Errorf("before the end of its retention period, the row must not be missing: got %+v", report)
		}

		if salts, err := storage.Select[string](b.Context(), b.db.Reader(), `SELECT salt FROM audit_chain WHERE id = 'e01'`); err != nil || salts[0] != "" {
			b.Errorf("the removed entry still has a salt: %v, %v", salts, err)
		}
	})
}
