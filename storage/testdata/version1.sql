-- Rows in the format of version 1 of the tables. The test replaces {{…}} with sealed values.
INSERT INTO operations (id, kind, instance_id, position, predecessor_id, state, description, problem_message, problem_reason,
	problem_component, finished_stages, skipped_steps, stage, step, step_began_at, waiting_for, woken, payload, created_at, updated_at,
	state_changed_at, started_at, finished_at, next_run_at, lease_owner, lease_taken_from, lease_until, fence)
VALUES
	('waits', 'provision', 'instance', 1, '', 'in progress', 'Operation created', 'away', 'err_away', 'provisioner', '["start"]',
		'["Tag"]', 'create', 'Order', NULL, 'event', FALSE, '{{operation waits}}', '2026-01-02T03:04:05.000006Z',
		'2026-01-02T03:05:05.000000Z', '2026-01-02T03:04:06.000000Z', '2026-01-02T03:04:06.000000Z', NULL,
		'2026-01-02T04:00:00.000000Z', '', '', NULL, 7),
	('next', 'deprovision', 'instance', 2, '', 'pending', 'Operation created', '', '', '', '[]', '[]', '', '', NULL, '', FALSE,
		'{{operation next}}', '2026-01-02T03:06:05.000000Z', '2026-01-02T03:06:05.000000Z', '2026-01-02T03:06:05.000000Z', NULL, NULL,
		'2026-01-02T03:06:05.000000Z', '', '', NULL, 0),
	('ended', 'provision', 'other', 1, 'waits', 'failed', 'Operation created', 'no quota', 'ERR_QUOTA', 'gardener', '[]', '[]', 'create',
		'Order', NULL, '', FALSE, '{{operation ended}}', '2026-01-02T03:07:05.000000Z', '2026-01-02T03:08:05.000000Z',
		'2026-01-02T03:08:05.000000Z', '2026-01-02T03:07:06.000000Z', '2026-01-02T03:08:05.000000Z', '2026-01-02T03:07:05.000000Z', '', '',
		NULL, 3);

INSERT INTO step_attempts (operation_id, stage, step, number, first_at, last_at, failures, failing_since, last_error)
VALUES ('waits', 'create', 'Order', 3, '2026-01-02T03:04:07.000000Z', '2026-01-02T03:05:05.000000Z', 2, '2026-01-02T03:04:37.000000Z', 'away');

INSERT INTO timeline (operation_id, seq, stage, step, attempt, began_at, ended_at, outcome, message, next_run_at)
VALUES
	('waits', 1, '', '', 0, '2026-01-02T03:04:05.000006Z', '2026-01-02T03:04:05.000006Z', 'accepted', 'provision', NULL),
	('waits', 2, 'create', 'Order', 3, '2026-01-02T03:05:05.000000Z', '2026-01-02T03:05:06.000000Z', 'retrying', 'away',
		'2026-01-02T04:00:00.000000Z');

INSERT INTO instances (id, service_id, plan_id, plan_name, global_account_id, subaccount_id, platform_region, provider, region, name,
	shoot_name, runtime_id, dashboard_url, request, created_at, updated_at)
VALUES ('instance', 'service', 'plan', 'aws', 'ga', 'sa', 'cf-eu10', 'aws', 'eu-central-1', 'name', 'c-1', 'runtime', 'https://example.com',
	'{{request of instance instance}}', '2026-01-02T03:04:05.000006Z', '2026-01-02T03:04:05.000006Z');

INSERT INTO runtimes (id, tenant, subaccount, shoot_name, provisioned_by, configuration, created_at, deleted_at)
VALUES ('runtime', 'tenant', 'sa', 'c-1', 'waits', '{{configuration of runtime runtime}}', '2026-01-02T03:04:05.000006Z', NULL);

INSERT INTO idempotency_keys (tenant, key, operation_id, created_at)
VALUES ('tenant', 'key', 'waits', '2026-01-02T03:04:05.000006Z');
