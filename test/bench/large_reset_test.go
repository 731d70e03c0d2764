package bench

import "fmt"

// reset removes the rows that a round has added, so that each round starts with the same rows in both databases. Otherwise, the
// first pages of the large database would contain different entries than in the small one, and the entry of a creation is twice
// as large as the entry of an update. Besides, claims would have to skip the index entries of earlier claims. No broker may be
// running.
func (z *sized) reset() {
	for _, statement := range append(withoutTriggers(
		// The filled database contained no unfinished operations, so those found now are from the round.
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
		// If only few rows were removed, a plain VACUUM leaves their index entries.
		`VACUUM (ANALYZE, INDEX_CLEANUP ON)`, `CHECKPOINT`,
	) {
		z.execute(statement)
	}
}

// execute executes a statement on the benchmark's only database connection.
func (e *environment) execute(statement string) {
	e.Helper()

	if _, err := e.db.ExecContext(e.Context(), statement); err != nil {
		e.Fatalf("%s: %v", statement, err)
	}
}

// withoutTriggers encloses the statements in two others, which disable and enable triggers for the connection. The triggers would
// reject changes of the audit log.
func withoutTriggers(statements ...string) []string {
	return append(append([]string{`SET session_replication_role = replica`}, statements...), `RESET session_replication_role`)
}
