-- +goose Up
-- The labels that operators give to instances.
CREATE TABLE instance_labels (
    instance_id TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    value       TEXT NOT NULL,
    PRIMARY KEY (instance_id, name)
);

CREATE INDEX instance_labels_by_name ON instance_labels (name, value, instance_id);

-- +goose Down
DROP TABLE instance_labels;
