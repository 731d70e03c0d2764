package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/report"
)

// dueEntries is the number of audit log entries that the sweep removes, in addition to the timelines.
const dueEntries = 200_000

// addDueEntries inserts entries whose retention period has ended.
const addDueEntries = `INSERT INTO audit (id, at, action, instance_id, operation_id, ordered_by, status, entry, keep_until)
	SELECT gen_random_uuid(), at, action, instance_id, operation_id, ordered_by, status, entry, now() - interval '1 hour'
	FROM audit CROSS JOIN generate_series(1, 10) LIMIT $1`

// swept are the numbers of removed rows.
type swept struct{ Timelines, Largest, Entries float64 }

// measureRetention measures the latency of requests while a broker removes old timelines and audit log entries, compared to a broker that
// has nothing to remove.
func (z *sized) measureRetention(s *scope) {
	kinds := []string{"last_operation", "creates"}
	without, with := map[string][]load.Rate{}, map[string][]load.Rate{}

	measure := func(s *scope, rates map[string][]load.Rate, variables ...string) {
		broker := s.startBroker(z.environment, append(variables, paused)...)
		requests := map[string]func(int) load.Request{
			"last_operation": lastOperations(broker.url, z.copies), "creates": creates(broker.url, manyTenants),
		}

		for range *rounds {
			for _, kind := range kinds {
				rates[kind] = append(rates[kind], s.rate(requests[kind]))
			}
		}
	}

	s.within(func(s *scope) { measure(s, without) })

	_, err := z.db.ExecContext(s.Context(), addDueEntries, dueEntries)
	s.check(err)

	before, start := z.swept(), time.Now()
	z.within(func(s *scope) { measure(s, with, "APP_TIMELINE_RETENTION=1h") })

	after, seconds := z.swept(), time.Since(start).Seconds()

	for _, kind := range kinds {
		for i := range *rounds {
			name := kind + " while rows are removed"
			idle, busy := without[kind][i], with[kind][i]

			s.addWithFloor(report.Figure{Name: name + ": requests/s"}, busy.PerSecond, idle.PerSecond)
			s.addWithFloor(report.Figure{Name: name + ": p99", Unit: "ms"}, p99(busy), p99(idle))
			s.addWithFloor(report.Figure{Name: name + ": longest response", Unit: "ms"},
				milliseconds(slices.Max(busy.Latencies)), milliseconds(slices.Max(idle.Latencies)))
		}
	}

	s.add(report.Figure{Name: "removed timelines/s meanwhile", Note: fmt.Sprintf("%.0f of operations", after.Timelines-before.Timelines)},
		(after.Timelines-before.Timelines)/seconds)
	s.add(report.Figure{Name: "timelines removed in one transaction, the most", AtMost: 50}, after.Largest)
	s.add(report.Figure{Name: "removed audit log entries/s meanwhile", Note: fmt.Sprintf("%.0f entries", before.Entries-after.Entries)},
		(before.Entries-after.Entries)/seconds)
}

// swept returns how many operations of the last hour have lost their timelines, the most in one transaction, which stores the same time in
// all its rows, and the number of due audit log entries.
func (z *sized) swept() (counts swept) {
	z.get(&counts, `SELECT COALESCE(SUM(removed), 0) AS timelines, COALESCE(MAX(removed), 0) AS largest,
			(SELECT COUNT(*) FROM audit WHERE keep_until < now()) AS entries
		FROM (SELECT COUNT(*) AS removed FROM operations WHERE timeline_removed_at > $1 GROUP BY timeline_removed_at) AS batches`, z.filledAt)

	return counts
}
