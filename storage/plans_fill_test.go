package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

const (
	// manyInstances is the number of existing instances, and goneInstances is the number of deleted instances. Each instance
	// has a provisioning. Deleted instances also have a deprovisioning.
	manyInstances = 100_000
	goneInstances = 10_000
)

// filledAt is the current time of the calls. All rows are older.
var filledAt = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fillTables inserts rows of both services, as in a large installation with many pending requests. Most instances are ready,
// ten thousand are being created, and a few have failed. The operations of deleted instances remain. Envelopes have a realistic
// length but cannot be decrypted.
func fillTables() []string {
	return []string{
		// According to the database's clock, the retention periods of the rows end in the future.
		`ALTER TABLE operations DISABLE TRIGGER operations_audit_no_delete`,
		// The events follow below.
		`ALTER TABLE operations DISABLE TRIGGER operations_accepted_event`, `ALTER TABLE instances DISABLE TRIGGER instances_event`,
		sources(`WHEN i % 1000 < 5 THEN 'failed' WHEN i % 1000 = 5 THEN 'canceled' WHEN i % 1000 BETWEEN 6 AND 105 THEN 'in progress'
			WHEN i % 1000 = 106 THEN 'pending' ELSE 'succeeded'`, `i % 10 = 0`),
		`INSERT INTO instances SELECT 'i' || i, 'service', 'plan-' || i % 4, (ARRAY['aws', 'azure', 'gcp', 'trial'])[1 + i % 4],
			'account-' || i % 2000, 'subaccount-' || i % 20000, 'cf-' || i % 12, (ARRAY['aws', 'azure', 'gcp', 'aws'])[1 + i % 4],
			'region-' || i % 20, 'name ' || i, 'c-' || i, 'r' || i, '', envelope, at AS created, at AS updated,
			CASE WHEN i % 8 = 3 THEN 'plan-3:account-' || i END FROM sources WHERE i <= 100000`,
		`UPDATE instances SET expires_at = created_at + interval '14 days', suspended = id LIKE '%03' WHERE plan_name = 'trial'`,
		operationsOf(`'i' || i, 1`, `'p' || i`, `'provision'`, `CASE WHEN i > 100000 THEN 'succeeded' ELSE state END`, `TRUE`),
		operationsOf(`'i' || i, 2`, `'d' || i`, `'deprovision'`, `'succeeded'`, `i > 100000`),
		timelines, attempts,
		`INSERT INTO bindings SELECT 'b' || i, 'i' || i, 'binding', 'r' || i, 'admin', 600, '', '', '', CASE WHEN i % 1000 = 7 THEN 'creating'
			ELSE 'ready' END, 'p' || i, envelope, at AS created, '2029-12-31'::timestamptz + i * interval '1 minute'
			FROM sources WHERE i <= 100000`,
		`INSERT INTO account_claims SELECT 't' || i, 'aws_' || i % 1000, FALSE, 'a' || i, FALSE, '2030-01-02 03:00'::timestamptz FROM sources WHERE i <= 90000`,
		`INSERT INTO account_cleanups SELECT 'a' || i, 'aws_' || i % 1000, at, 1, 'pending', '', at FROM sources WHERE i <= 1000`,
		`INSERT INTO account_uses SELECT 'i' || i, 't' || i, 'aws_' || i % 1000, FALSE, i % 100 = 0, '', '2030-01-02 03:00'::timestamptz FROM sources WHERE i <= 90000`,
		`INSERT INTO leftovers SELECT 'd' || i, 'deprovision', 'i' || i, 'service', 'plan', 'aws', 'account-' || i % 2000, 'subaccount-' || i, '', 'default',
			'cf', 'aws', 'region', 'name ' || i, 'c-' || i, 'r' || i, 'EDP_Deregistration', 'd' || i, 'd' || i, at,
			'2030-01-02 03:04'::timestamptz - i * interval '1 second', '2030-01-02 03:04'::timestamptz - (i - 100000) * interval '1 second' FROM sources WHERE i > 100000`,
		`INSERT INTO outside_objects SELECT 'i' || i, 'edp', 'data tenant', 'subaccount-' || i % 20000, 'created', '2030-01-02 03:00'::timestamptz
			FROM sources WHERE i <= 90000`,
		`INSERT INTO outside_objects (instance_id, system, kind, object_key, state, updated_at, due_at) SELECT 'i' || i, 'reconciler', 'cluster', 'r' || i,
			'created', '2030-01-02 03:00'::timestamptz, '2030-01-02 04:00'::timestamptz + i * interval '1 second' FROM sources WHERE i <= 9000`,
		`INSERT INTO outside_configurations SELECT 'i' || i, envelope, at FROM sources WHERE i <= 9000`,
		`UPDATE instances SET deletion_protection = TRUE WHERE id LIKE '%00'`,
		`INSERT INTO instance_labels SELECT 'i' || i, 'ring', CASE WHEN i % 1000 = 0 THEN 'canary' ELSE 'rest' END FROM sources WHERE i <= 90000`,
		`INSERT INTO instance_labels SELECT 'i' || i, 'team', 'team-' || i % 100 FROM sources WHERE i <= 90000 AND i % 10 = 0`,
		`INSERT INTO instance_events SELECT 'i' || i, 'reconciler', number, 'renewed', '', 1, at, '2030-01-02 03:00'::timestamptz - i * interval '1 minute'
			FROM sources, generate_series(1, 2) AS number WHERE i <= 90000`,
		`INSERT INTO instance_event_intents SELECT 'i' || i, 'btp-operator', at FROM sources WHERE i <= 9000`,
		`INSERT INTO notifications SELECT 'p' || i, number, 'i' || i, '1', 'create', '2030-01-02 03:00'::timestamptz - i * interval '1 minute', at AS due, at AS began, 1,
			CASE WHEN i > 200 THEN at END, i > 200 FROM sources, generate_series(1, 2) AS number WHERE i <= 90000`,
		`INSERT INTO orchestrations SELECT 'o' || i, 'upgradeCluster', CASE WHEN i < 5 THEN 'in progress' ELSE 'succeeded' END, '', '{}', 'user', at AS created, at
			FROM sources WHERE i <= 1000`,
		`INSERT INTO orchestration_targets SELECT 'o' || CASE WHEN i <= 20000 THEN 1 ELSE 5 + i % 995 END, 'i' || i, 'p' || i, '',
			CASE WHEN i % 100 = 0 THEN 'in progress' WHEN i % 100 = 1 THEN 'failed' WHEN i % 2 = 0 THEN 'pending' ELSE 'succeeded' END, '',
			(ARRAY['aws', 'azure', 'gcp', 'aws'])[1 + i % 4], 'region-' || i % 20, '2030-01-02 03:00'::timestamptz + i * interval '1 second'
			FROM sources`,
		`INSERT INTO new_events (type, object, happened_at) SELECT 'operation.accepted', 'i' || i, at FROM sources WHERE i <= 100`,
		`INSERT INTO events SELECT i, 'e' || i, (ARRAY['operation.accepted', 'operation.succeeded', 'instance.created', 'operation.failed'])[1 + i % 4], 'i' || i, '', '',
			'p' || i, 'provision', 'account-' || i % 2000, '', '', '', '', '', 0, at AS happened, '2030-01-02 03:00'::timestamptz - (110000 - i) * interval '1 minute'
			FROM sources`,
		`UPDATE events_head SET position = 110000`,
		`INSERT INTO webhooks SELECT 'w' || i, envelope, '', '', 110000, at, NULL, '', NULL, '' FROM sources WHERE i <= 20000`,
		`INSERT INTO webhook_deliveries SELECT 'w' || 1 + i % 50, i, 'runtimes/i' || i % 20000, i % 10 = 0, 1, at, '2030-01-02 03:00'::timestamptz + i * interval '1 second',
			500, 'HTTP status 500' FROM sources WHERE i <= 40000`,
		`ALTER TABLE operations ENABLE TRIGGER operations_accepted_event`, `ALTER TABLE instances ENABLE TRIGGER instances_event`,
		`INSERT INTO endpoints SELECT 'i' || i, envelope, '2030-01-02 03:00'::timestamptz + i * interval '1 minute' FROM sources WHERE i <= 90000`,
		`INSERT INTO releases SELECT 'registry.example.com/kyma', i || '.0.0', 'sha256:' || i, '2030-01-02 03:00'::timestamptz
			FROM generate_series(1, 10000) i`,
		`INSERT INTO runtimes (id, tenant, subaccount, shoot_name, provisioned_by, configuration, created_at, deleted_at, provider, region)
			SELECT 'r' || i, 'account-' || i % 2000, '', 'c-' || i, 'p' || i, envelope, at, CASE WHEN i > 100000 THEN at END,
			'aws', CASE WHEN i % 1000 > 0 THEN 'region-' || i % 20 END FROM sources`,
		`INSERT INTO registrations SELECT 'account-' || i % 2000, 'label-' || i, 'r' || i, 'p' || i, state <> 'in progress', at
			FROM sources WHERE state IN ('in progress', 'failed')`,
		`INSERT INTO audit SELECT 'e' || i, at, CASE WHEN i % 100 = 0 THEN 'cancel' ELSE 'provision' END, 'i' || i, '', 'user-' || i % 100, 409, '{}',
			at + interval '400 days' FROM sources WHERE i % 3 = 0`,
		// The rows of the last hours are not chained.
		`INSERT INTO audit_chain SELECT row_number() OVER (ORDER BY at, id), at, source, id, at + interval '400 days', 'salt', 'personal', 'content', 'hash' FROM (
			SELECT id, at, 'entry' AS source FROM audit UNION ALL SELECT id, created_at, 'operation' FROM operations) AS rows
			WHERE at < (SELECT MAX(at) - interval '1 day' FROM audit)`,
		`UPDATE audit_chain_head SET number = (SELECT MAX(number) FROM audit_chain), hash = 'hash',
			entries_at = (SELECT MAX(chained_at) FROM audit_chain), operations_at = (SELECT MAX(chained_at) FROM audit_chain)`,
		`INSERT INTO idempotency_keys SELECT 'account-' || i % 2000, 'key-' || i, 'p' || i, at FROM sources`,
	}
}

// windowTables inserts maintenance windows after the statements of fillTables.
func windowTables() []string {
	return []string{
		`UPDATE orchestration_targets SET maintenance_window = 'daily ' || region, not_after = not_before + interval '1 year' WHERE state = 'pending'`,
		`INSERT INTO shoot_windows SELECT 'i' || i, '220000+0000', '230000+0000', '2030-01-02 03:00'::timestamptz + i * interval '1 minute'
			FROM sources WHERE i <= 90000`,
	}
}

// crowdedTables inserts operations, most of them unfinished. Some are pending, and others wait for an upstream. Every third
// waiting operation has another operation queued behind it.
func crowdedTables() []string {
	return []string{
		`ALTER TABLE operations DISABLE TRIGGER operations_audit_no_delete`, // the tests remove the rows that they have added
		sources(`WHEN i % 100 < 25 THEN 'in progress' WHEN i % 100 < 98 THEN 'pending' WHEN i % 100 = 98 THEN 'canceling' ELSE 'succeeded'`,
			`i % 500 = 10`),
		operationsOf(`'i' || i, 1`, `'p' || i`, `CASE WHEN i % 1000 = 1 THEN 'update' ELSE 'provision' END`, `state`, `TRUE`),
		operationsOf(`'i' || i, 2`, `'b' || i`, `'blocked'`, `'pending'`, `state = 'in progress' AND i % 3 = 0`),
		timelines, attempts,
	}
}

// sources returns the statement that creates a table with one row for each operation. states is the CASE expression that chooses
// the state. leased is the condition under which an operation in progress has a lease.
func sources(states, leased string) string {
	return `CREATE TEMPORARY TABLE sources AS SELECT i, state, ` + leased + ` AS leased,
			'2029-01-01'::timestamptz + i * interval '4 minutes' AS at, 'test:' || repeat(md5(i::text), 20) AS envelope
		FROM (SELECT i, CASE ` + states + ` END AS state FROM generate_series(1, 110000) AS i) AS numbered`
}

const (
	timelines = `INSERT INTO timeline (operation_id, seq, stage, step, attempt, began_at, ended_at, outcome, message)
		SELECT 'p' || i, 1, 'stage', 'step', 1, at AS began, at AS ended, 'done', '' FROM sources`
	attempts = `INSERT INTO step_attempts (operation_id, stage, step, number, first_at, last_at, failures, last_error)
		SELECT 'p' || i, 'stage', 'step', 3, at AS began, at AS ended, 0, '' FROM sources WHERE state IN ('in progress', 'failed')`
)

// operationsOf returns the statement that inserts an operation for each row of sources that meets the condition chosen. The
// parameters are SQL expressions; instance has two, for the instance ID and the position. One in seven active operations is due;
// the others wait for a year.
func operationsOf(instance, id, kind, state, chosen string) string {
	return `INSERT INTO operations (instance_id, position, id, kind, state, tenant, turn, predecessor_id, description, problem_message,
			problem_reason, problem_component, finished_stages, skipped_steps, stage, step, waiting_for, woken, payload, created_at, updated_at,
			state_changed_at, started_at, finished_at, next_run_at, lease_owner, lease_taken_from, lease_until, fence, ordered_by, audit,
			keep_until, examine_at, timeline_removed_at)
		SELECT ` + instance + `, ` + id + `, ` + kind + `, state, 'account-' || i % 2000, i / 2000, '', '', '', '', '', '[]', '[]', 'stage', 'step',
			CASE WHEN state = 'in progress' THEN 'event-' || i ELSE '' END, FALSE, envelope, at AS created, at AS updated, at AS changed, at AS started,
			CASE WHEN state IN ('succeeded', 'failed', 'canceled') THEN at END,
			CASE WHEN i % 7 = 0 THEN at ELSE '2031-01-01' END, CASE WHEN leased AND state = 'in progress' THEN 'replica' ELSE '' END, '',
			CASE WHEN leased AND state = 'in progress' THEN '2030-01-02 03:04:10'::timestamptz END, 1, 'user-' || i % 100, '{}',
			at + interval '400 days' AS kept, at + interval '400 days' AS examined, CASE WHEN i > 100000 THEN at + interval '30 days' END
		FROM (SELECT i, at, envelope, ` + state + ` AS state, leased FROM sources WHERE ` + chosen + `) AS chosen`
}

// fill executes the statements and updates the planner's statistics.
func fill(t *testing.T, db *storage.DB, statements []string) {
	t.Helper()

	const limit = 5 * time.Minute

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	if err := db.InTx(ctx, func(tx storage.Tx) error {
		for _, statement := range statements {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	if _, err := db.Reader().ExecContext(t.Context(), `VACUUM ANALYZE`); err != nil {
		t.Fatal(err)
	}
}
