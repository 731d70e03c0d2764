-- +goose Up
-- Triggers add a row with each change that is an event, in the transaction of the change. They cover all writers of a table, also those of
-- other releases. The service moves committed rows to the table events. A migration that removes a column of operations, instances or
-- orchestrations that a trigger uses must replace the trigger.
CREATE TABLE new_events (
    seq          BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           TEXT        NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
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

-- +goose StatementBegin
CREATE FUNCTION event_of_operation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO new_events (type, object, operation_id, kind, account, happened_at)
            VALUES ('operation.accepted', NEW.instance_id, NEW.id, NEW.kind, NEW.tenant, NEW.created_at);
    ELSE
        INSERT INTO new_events (type, object, operation_id, kind, account, reason, component, happened_at)
            VALUES ('operation.' || NEW.state, NEW.instance_id, NEW.id, NEW.kind, NEW.tenant, NEW.problem_reason, NEW.problem_component,
                COALESCE(NEW.finished_at, NEW.updated_at));
    END IF;

    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- Operations that conduct orchestrations are not events: the orchestrations are.
CREATE TRIGGER operations_accepted_event AFTER INSERT ON operations
    FOR EACH ROW WHEN (NEW.kind <> 'orchestrate') EXECUTE FUNCTION event_of_operation();
CREATE TRIGGER operations_ended_event AFTER UPDATE OF state ON operations
    FOR EACH ROW WHEN (NEW.state <> OLD.state AND NEW.state IN ('succeeded', 'failed', 'canceled') AND NEW.kind <> 'orchestrate')
    EXECUTE FUNCTION event_of_operation();

-- +goose StatementBegin
CREATE FUNCTION event_of_instance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO new_events (type, object, account, plan, region)
            VALUES ('instance.deleted', OLD.id, OLD.global_account_id, OLD.plan_name, OLD.region);

        RETURN NULL;
    END IF;

    IF TG_OP = 'UPDATE' AND OLD.expired_at IS NULL AND NEW.expired_at IS NOT NULL THEN
        INSERT INTO new_events (type, object, account, plan, region, happened_at)
            VALUES ('instance.expired', NEW.id, NEW.global_account_id, NEW.plan_name, NEW.region, NEW.updated_at);

        IF OLD.suspended = NEW.suspended THEN
            RETURN NULL;
        END IF;
    END IF;

    INSERT INTO new_events (type, object, account, plan, region, happened_at)
        VALUES (CASE WHEN TG_OP = 'INSERT' THEN 'instance.created' WHEN NEW.suspended AND NOT OLD.suspended THEN 'instance.suspended'
                WHEN OLD.suspended AND NOT NEW.suspended THEN 'instance.resumed' ELSE 'instance.updated' END,
            NEW.id, NEW.global_account_id, NEW.plan_name, NEW.region, NEW.updated_at);

    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- The columns plan_id and platform are set by all changes of an instance by users and operators, whether or not they differ, and by no other
-- write.
CREATE TRIGGER instances_event AFTER INSERT OR DELETE OR UPDATE OF plan_id, platform ON instances
    FOR EACH ROW EXECUTE FUNCTION event_of_instance();

-- +goose StatementBegin
CREATE FUNCTION event_of_orchestration() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.wave <> OLD.wave THEN
        INSERT INTO new_events (type, object, kind, state, wave, happened_at)
            VALUES ('orchestration.wave', NEW.id, NEW.kind, NEW.state, NEW.wave, NEW.updated_at);
    END IF;

    IF TG_OP = 'UPDATE' AND NEW.state = OLD.state OR NEW.state IN ('planned', 'expired', 'canceling')
        OR TG_OP = 'UPDATE' AND OLD.state = 'planned' AND NEW.state = 'canceled'
        OR TG_OP = 'UPDATE' AND OLD.state IN ('pending', 'retrying', 'in progress') AND NEW.state IN ('pending', 'retrying', 'in progress')
    THEN
        RETURN NULL;
    END IF;

    INSERT INTO new_events (type, object, kind, state, wave, happened_at)
        VALUES (CASE WHEN NEW.state IN ('succeeded', 'failed', 'canceled') THEN 'orchestration.finished'
                WHEN NEW.state IN ('paused', 'gated') THEN 'orchestration.paused'
                WHEN TG_OP = 'INSERT' OR OLD.state = 'planned' THEN 'orchestration.started' ELSE 'orchestration.resumed' END,
            NEW.id, NEW.kind, NEW.state, NEW.wave, NEW.updated_at);

    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER orchestrations_event AFTER INSERT OR UPDATE OF state, wave ON orchestrations
    FOR EACH ROW EXECUTE FUNCTION event_of_orchestration();

-- +goose Down
DROP TRIGGER orchestrations_event ON orchestrations;
DROP FUNCTION event_of_orchestration();
DROP TRIGGER instances_event ON instances;
DROP FUNCTION event_of_instance();
DROP TRIGGER operations_ended_event ON operations;
DROP TRIGGER operations_accepted_event ON operations;
DROP FUNCTION event_of_operation();
DROP TABLE events_head;
DROP TABLE events;
DROP TABLE new_events;
