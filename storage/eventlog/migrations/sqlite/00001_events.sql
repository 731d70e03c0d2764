-- +goose Up
-- Triggers add a row with each change that is an event, in the transaction of the change. They cover all writers of a table, also those of
-- other releases. The service moves committed rows to the table events. A migration that removes a column of operations, instances or
-- orchestrations that a trigger uses must replace the trigger.
CREATE TABLE new_events (
    seq          INTEGER     PRIMARY KEY,
    id           TEXT        NOT NULL DEFAULT (lower(hex(randomblob(16)))),
    type         TEXT        NOT NULL,
    -- The key of the object: the ID of an instance or orchestration, or the key of a binding or leftover.
    object       TEXT        NOT NULL,
    operation_id TEXT        NOT NULL DEFAULT '',
    kind         TEXT        NOT NULL DEFAULT '',
    account      TEXT        NOT NULL DEFAULT '',
    plan         TEXT        NOT NULL DEFAULT '',
    region       TEXT        NOT NULL DEFAULT '',
    state        TEXT        NOT NULL DEFAULT '',
    reason       TEXT        NOT NULL DEFAULT '',
    component    TEXT        NOT NULL DEFAULT '',
    wave         BIGINT      NOT NULL DEFAULT 0,
    -- NULL for deletions, whose rows have no time.
    happened_at  TIMESTAMPTZ
);

-- Events in the order of their positions, which have no gaps at the time when they are added: a reader that has seen a position has seen
-- all earlier ones.
CREATE TABLE events (
    position     BIGINT      PRIMARY KEY,
    id           TEXT        NOT NULL,
    type         TEXT        NOT NULL,
    instance_id  TEXT        NOT NULL,
    binding_id   TEXT        NOT NULL,
    orchestration_id TEXT    NOT NULL,
    operation_id TEXT        NOT NULL,
    kind         TEXT        NOT NULL,
    account      TEXT        NOT NULL,
    plan         TEXT        NOT NULL,
    region       TEXT        NOT NULL,
    state        TEXT        NOT NULL,
    reason       TEXT        NOT NULL,
    component    TEXT        NOT NULL,
    wave         BIGINT      NOT NULL,
    happened_at  TIMESTAMPTZ NOT NULL,
    added_at     TIMESTAMPTZ NOT NULL
);

-- Finds the events of an account that is erased.
CREATE INDEX events_account ON events (account) WHERE account <> '';

-- One row: the last position, and the last one that the retention has removed.
CREATE TABLE events_head (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    position BIGINT  NOT NULL,
    removed  BIGINT  NOT NULL
);

INSERT INTO events_head (id, position, removed) VALUES (1, 0, 0);

-- Operations that conduct orchestrations are not events: the orchestrations are.
-- +goose StatementBegin
CREATE TRIGGER operations_accepted_event AFTER INSERT ON operations WHEN NEW.kind <> 'orchestrate'
BEGIN
    INSERT INTO new_events (type, object, operation_id, kind, account, happened_at)
        VALUES ('operation.accepted', NEW.instance_id, NEW.id, NEW.kind, NEW.tenant, NEW.created_at);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER operations_ended_event AFTER UPDATE OF state ON operations
WHEN NEW.state <> OLD.state AND NEW.state IN ('succeeded', 'failed', 'canceled') AND NEW.kind <> 'orchestrate'
BEGIN
    INSERT INTO new_events (type, object, operation_id, kind, account, reason, component, happened_at)
        VALUES ('operation.' || NEW.state, NEW.instance_id, NEW.id, NEW.kind, NEW.tenant, NEW.problem_reason, NEW.problem_component,
            COALESCE(NEW.finished_at, NEW.updated_at));
END;
-- +goose StatementEnd

-- The columns plan_id and platform are set by all changes of an instance by users and operators, whether or not they differ, and by no other
-- write.
-- +goose StatementBegin
CREATE TRIGGER instances_created_event AFTER INSERT ON instances
BEGIN
    INSERT INTO new_events (type, object, account, plan, region, happened_at)
        VALUES ('instance.created', NEW.id, NEW.global_account_id, NEW.plan_name, NEW.region, NEW.updated_at);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER instances_updated_event AFTER UPDATE OF plan_id, platform ON instances
BEGIN
    INSERT INTO new_events (type, object, account, plan, region, happened_at)
        SELECT 'instance.expired', NEW.id, NEW.global_account_id, NEW.plan_name, NEW.region, NEW.updated_at
        WHERE OLD.expired_at IS NULL AND NEW.expired_at IS NOT NULL;
    INSERT INTO new_events (type, object, account, plan, region, happened_at)
        SELECT CASE WHEN NEW.suspended AND NOT OLD.suspended THEN 'instance.suspended'
                WHEN OLD.suspended AND NOT NEW.suspended THEN 'instance.resumed' ELSE 'instance.updated' END,
            NEW.id, NEW.global_account_id, NEW.plan_name, NEW.region, NEW.updated_at
        WHERE OLD.suspended <> NEW.suspended OR NOT (OLD.expired_at IS NULL AND NEW.expired_at IS NOT NULL);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER instances_deleted_event AFTER DELETE ON instances
BEGIN
    INSERT INTO new_events (type, object, account, plan, region)
        VALUES ('instance.deleted', OLD.id, OLD.global_account_id, OLD.plan_name, OLD.region);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER orchestrations_started_event AFTER INSERT ON orchestrations WHEN NEW.state <> 'planned'
BEGIN
    INSERT INTO new_events (type, object, kind, state, wave, happened_at)
        VALUES ('orchestration.started', NEW.id, NEW.kind, NEW.state, NEW.wave, NEW.updated_at);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER orchestrations_wave_event AFTER UPDATE OF wave ON orchestrations WHEN NEW.wave <> OLD.wave
BEGIN
    INSERT INTO new_events (type, object, kind, state, wave, happened_at)
        VALUES ('orchestration.wave', NEW.id, NEW.kind, NEW.state, NEW.wave, NEW.updated_at);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER orchestrations_state_event AFTER UPDATE OF state ON orchestrations
WHEN NEW.state <> OLD.state AND NEW.state NOT IN ('planned', 'expired', 'canceling') AND NOT (OLD.state = 'planned' AND NEW.state = 'canceled')
    AND NOT (OLD.state IN ('pending', 'retrying', 'in progress') AND NEW.state IN ('pending', 'retrying', 'in progress'))
BEGIN
    INSERT INTO new_events (type, object, kind, state, wave, happened_at)
        VALUES (CASE WHEN NEW.state IN ('succeeded', 'failed', 'canceled') THEN 'orchestration.finished'
                WHEN NEW.state IN ('paused', 'gated') THEN 'orchestration.paused'
                WHEN OLD.state = 'planned' THEN 'orchestration.started' ELSE 'orchestration.resumed' END,
            NEW.id, NEW.kind, NEW.state, NEW.wave, NEW.updated_at);
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER orchestrations_state_event;
DROP TRIGGER orchestrations_wave_event;
DROP TRIGGER orchestrations_started_event;
DROP TRIGGER instances_deleted_event;
DROP TRIGGER instances_updated_event;
DROP TRIGGER instances_created_event;
DROP TRIGGER operations_ended_event;
DROP TRIGGER operations_accepted_event;
DROP TABLE events_head;
DROP TABLE events;
DROP TABLE new_events;
