package bench

import (
	"fmt"
	"math"

	"github.com/environment-broker/environment-broker/test/bench/report"
)

// measureBytes measures the size of rows, including indexes.
func (z *sized) measureBytes() {
	const withTimeline = `(SELECT count(*) FROM operations WHERE timeline_removed_at IS NULL)`

	for _, row := range []struct{ table, per, count string }{
		{"instances", "instance", `(SELECT count(*) FROM instances)`},
		{"endpoints", "instance", `(SELECT count(*) FROM instances)`},
		{"operations", "operation", `(SELECT count(*) FROM operations)`},
		{"timeline", "operation with a timeline", withTimeline},
		{"step_attempts", "operation with a timeline", withTimeline},
		{"audit", "entry", `(SELECT count(*) FROM audit)`},
		{"audit_chain", "operation or entry", `(SELECT count(*) FROM audit_chain)`},
	} {
		var bytes struct{ Rows, Indexes float64 }

		z.get(&bytes, `SELECT pg_table_size('`+row.table+`')::float / count AS rows, pg_indexes_size('`+row.table+`')::float / count AS indexes
			FROM (SELECT NULLIF(`+row.count+`, 0) AS count) AS counted`)
		z.add(report.Figure{
			Name: fmt.Sprintf("size of table %s per %s", row.table, row.per), Unit: "bytes",
			Note: fmt.Sprintf("rows %.0f, indexes %.0f", bytes.Rows, bytes.Indexes),
		}, math.Round(bytes.Rows+bytes.Indexes))
	}
}

// bytes returns the size of the database without the tables of the floor.
func (z *sized) bytes() (bytes float64) {
	z.get(&bytes, `SELECT pg_database_size(current_database())
		- (SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'floor%')`)

	return bytes
}
