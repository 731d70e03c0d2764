package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/report"
)

const (
	// dueEntries is the number of audit log entries that become due for removal in a round, and dueInstances is the number of
	// instances whose operations become due. Three of the five operations of an instance are removed. A round ends before all of
	// them are removed.
	dueEntries   = 200_000
	dueInstances = 10_000
)

// Statements that make rows due for removal. The retention removes an operation only if its timeline is already removed and the
// hash chain contains the same end of its retention period.
const (
	addDueEntries = `INSERT INTO audit (id, at, action, instance_id, operation_id, ordered_by, status, entry, keep_until)
		SELECT gen_random_uuid(), at, action, instance_id, operation_id, ordered_by, status, entry, now() - interval '1 hour'
		FROM audit CROSS JOIN generate_series(1, 10) LIMIT %d`
	endOperations = `WITH due AS (
			UPDATE operations SET keep_until = date_trunc('hour', now()) - interval '1 hour', examine_at = created_at
			WHERE timeline_removed_at IS NOT NULL AND instance_id IN (SELECT instance_id FROM operations
				WHERE timeline_removed_at IS NOT NULL AND position = 1 AND keep_until > now() ORDER BY created_at LIMIT %d)
			RETURNING id, keep_until)
		UPDATE audit_chain AS c SET keep_until = due.keep_until FROM due WHERE c.id = due.id AND c.source = 'operation'`
)

// Statements that undo the ones above for the rows that the retention has not removed.
const (
	removeDueEntries   = `DELETE FROM audit WHERE keep_until < now()`
	postponeOperations = `UPDATE operations SET examine_at = NULL WHERE examine_at < now()`
)

// removals is a condition that selects the statements of the retention, including the statements of the triggers that they fire.
const removals = `query ~ '(DELETE FROM (timeline|step_attempts|operations|audit) |SET timeline_removed_at|examine_at <|SET examine_at|SELECT o\.id FROM operations|position.*AS due)'`

// swept contains row counts. Their differences between two times are the numbers of removed rows.
type swept struct{ Timelines, Largest, Entries, Operations float64 }

// measureRetention measures the latency of requests while a broker removes old timelines, audit log entries and operations, compared to a broker
// that has nothing to remove.
func (z *sized) measureRetention(s *scope) {
	kinds := []string{"last_operation", "creates"}

	measure := func(s *scope, variables ...string) map[string]load.Rate {
		rates := map[string]load.Rate{}
		broker := s.startBroker(z.environment, append(variables, paused)...)
		requests := map[string]func(int) load.Request{
			"last_operation": lastOperations(broker.url, z.copies), "creates": creates(broker.url, manyTenants),
		}

		for _, kind := range kinds {
			rates[kind] = s.rate(requests[kind])
		}

		return rates
	}

	z.execute(`CREATE EXTENSION pg_stat_statements`)

	for range *rounds {
		var idle, busy map[string]load.Rate

		z.within(func(s *scope) { idle = measure(s) })

		for _, statement := range withoutTriggers(fmt.Sprintf(addDueEntries, dueEntries), fmt.Sprintf(endOperations, dueInstances)) {
			z.execute(statement)
		}

		z.execute(`VACUUM ANALYZE operations`)
		z.execute(`CHECKPOINT`)
		z.execute(`SELECT pg_stat_statements_reset()`)

		before, start := z.swept(), time.Now()
		z.within(func(s *scope) { busy = measure(s, "APP_TIMELINE_RETENTION=1h") })
		z.addSwept(s, before, z.swept(), time.Since(start))

		for _, kind := range kinds {
			name := kind + " while rows are removed"
			idle, busy := idle[kind], busy[kind]

			s.addWithFloor(report.Figure{Name: name + ": requests/s"}, busy.PerSecond, idle.PerSecond)
			s.addWithFloor(report.Figure{Name: name + ": p99", Unit: "ms"}, p99(busy), p99(idle))

			longest, alone := slices.Max(busy.Latencies), slices.Max(idle.Latencies)
			s.addWithFloor(report.Figure{Name: name + ": longest response", Unit: "ms"}, milliseconds(longest), milliseconds(alone))
			s.add(report.Figure{Name: name + ": longest response, compared to no rows to remove", Unit: "%", AtMost: 200},
				100*float64(longest)/float64(alone))
		}

		for _, statement := range withoutTriggers(removeDueEntries, postponeOperations) {
			z.execute(statement)
		}

		z.reset()
	}
}

// addSwept adds the figures about the rows removed during a round.
func (z *sized) addSwept(s *scope, before, after swept, took time.Duration) {
	for _, removed := range []struct {
		rows  string
		count float64
	}{
		{"timelines", after.Timelines - before.Timelines},
		{"audit log entries", before.Entries - after.Entries},
		{"operations", before.Operations - after.Operations},
	} {
		if removed.count == 0 {
			s.Fatalf("the retention has removed no %s", removed.rows)
		}

		s.add(report.Figure{Name: fmt.Sprintf("removed %s/s meanwhile", removed.rows), Note: fmt.Sprintf("%.0f in the last round", removed.count)},
			removed.count/took.Seconds())
	}

	s.add(report.Figure{Name: "timelines removed in one transaction, the most", AtMost: 50}, after.Largest)

	var statements []struct {
		Query                 string
		Longest, Mean, Blocks float64
	}

	s.check(z.db.SelectContext(s.Context(), &statements, `SELECT query, max_exec_time AS longest, mean_exec_time AS mean,
		(shared_blks_hit + shared_blks_read)::float / calls AS blocks FROM pg_stat_statements WHERE `+removals+` ORDER BY max_exec_time DESC`))

	for _, statement := range statements {
		s.Logf("%.1f ms at most, %.1f ms on average, %.0f blocks: %s", statement.Longest, statement.Mean, statement.Blocks, statement.Query)
	}

	if len(statements) == 0 {
		s.Fatal("the server has no statistics about the retention")
	}

	longest := statements[0]
	s.add(report.Figure{Name: "longest statement of the retention", Unit: "ms", Note: fmt.Sprintf("%.1f ms on average", longest.Mean)}, longest.Longest)
}

// swept returns the number of operations whose timelines were removed since the fill, the largest such number in one transaction,
// the number of due audit log entries that are left, and the number of operations. Rows from one transaction have the same removal
// time.
func (z *sized) swept() (counts swept) {
	z.get(&counts, `SELECT COALESCE(SUM(removed), 0) AS timelines, COALESCE(MAX(removed), 0) AS largest,
			(SELECT COUNT(*) FROM audit WHERE keep_until < now()) AS entries,
			(SELECT COUNT(*) FROM operations WHERE state = 'succeeded') AS operations
		FROM (SELECT COUNT(*) AS removed FROM operations WHERE timeline_removed_at > $1 GROUP BY timeline_removed_at) AS batches`, z.filledAt)

	return counts
}
