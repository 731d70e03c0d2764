-- +goose Up
-- The objects that instances have in other systems. There is no foreign key to instances: a row stays until its object is gone,
-- also after the deletion of the instance.
CREATE TABLE outside_objects (
    instance_id TEXT        NOT NULL,
    system      TEXT        NOT NULL,
    kind        TEXT        NOT NULL,
    object_key  TEXT        NOT NULL,
    state       TEXT        NOT NULL,
    updated_at  TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (instance_id, system, kind)
);

CREATE INDEX outside_objects_key ON outside_objects (system, object_key);

-- +goose Down
DROP TABLE outside_objects;
