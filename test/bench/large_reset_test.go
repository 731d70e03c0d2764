package bench

import "fmt"

// reset removes the rows that a round has added, so that each round starts with the same rows in both databases. Otherwise, the first
// pages of the large database would have other entries than those of the small one: the entry of a creation is twice as large as that of
// an update. Claims would pass the index entries of earlier claims. No broker may run.
func (z *sized) reset() {
	for _, statement := range append(withoutTriggers(
		// The fill contains no unfinished operations.
		`DELETE FROM timeline WHERE operation_id IN (SELECT id FROM operations WHERE state IN ('pending', 'in progress'))`,
		`DELETE FROM step_attempts WHERE operation_id IN (SELECT id FROM operations WHERE state IN ('pending', 'in progress'))`,
		`DELETE FROM instances WHERE id IN (SELECT instance_id FROM operations WHERE state IN ('pending', 'in progress'))`,
		`DELETE FROM operations WHERE state IN ('pending', 'in progress')`,
		`DELETE FROM floor_operations WHERE state <> 'succeeded'`,
		`DELETE FROM floor_instances AS f WHERE NOT EXISTS (SELECT FROM instances AS i WHERE i.id = f.id)`,
		fmt.Sprintf(`DELETE FROM audit_chain WHERE number > %d`, z.size*(operationsEach+1)),
		fmt.Sprintf(`UPDATE audit_chain_head SET number = %d`, z.size*(operationsEach+1)),
		`TRUNCATE new_events`,
	),
		// A plain VACUUM leaves index entries of few removed rows.
		`VACUUM (ANALYZE, INDEX_CLEANUP ON)`, `CHECKPOINT`,
	) {
		z.execute(statement)
	}
}

// execute executes a statement on the only connection of the benchmark.
func (e *environment) execute(statement string) {
	e.Helper()

	if _, err := e.db.ExecContext(e.Context(), statement); err != nil {
		e.Fatalf("%s: %v", statement, err)
	}
}

// withoutTriggers returns the statements between two others that disable and enable triggers for the connection. The triggers refuse changes
// of the audit log.
func withoutTriggers(statements ...string) []string {
	return append(append([]string{`SET session_replication_role = replica`}, statements...), `RESET session_replication_role`)
}
