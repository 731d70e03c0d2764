-- +goose Up
-- The maintenance windows of Shoots by instance, as the Provisioner reported them last. Without a window, or before the first report, both
-- times are empty. There is no foreign key: package broker/refresh removes the rows of instances without a runtime.
CREATE TABLE shoot_windows (
    instance_id  TEXT        PRIMARY KEY,
    window_begin TEXT        NOT NULL,
    window_end   TEXT        NOT NULL,
    due_at       TIMESTAMPTZ NOT NULL
);

CREATE INDEX shoot_windows_due ON shoot_windows (due_at);

-- +goose Down
DROP TABLE shoot_windows;
