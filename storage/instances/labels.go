package instances

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// Labels returns the labels of the given instances, keyed by instance ID. Instances without labels are absent from the result.
// Pass at most the IDs of one page, because databases limit the number of parameters.
func (s *Store) Labels(ctx context.Context, tx storage.Tx, ids ...string) (map[string]map[string]string, error) {
	found := map[string]map[string]string{}
	if len(ids) == 0 {
		return found, nil
	}

	rows, err := storage.Select[struct {
		InstanceID string `db:"instance_id"`
		Name       string `db:"name"`
		Value      string `db:"value"`
	}](ctx, tx, `SELECT instance_id, name, value FROM instance_labels WHERE instance_id IN (?)`, ids)

	for _, row := range rows {
		if found[row.InstanceID] == nil {
			found[row.InstanceID] = map[string]string{}
		}

		found[row.InstanceID][row.Name] = row.Value
	}

	return found, failure.While(err, "reading the labels of instances")
}

// SetLabels replaces the labels of an instance in the caller's transaction. The caller must have locked the instance.
func (s *Store) SetLabels(ctx context.Context, tx storage.Tx, instanceID string, labels map[string]string) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM instance_labels WHERE instance_id = ?`, instanceID)
	if err != nil || len(labels) == 0 {
		return failure.While(err, "removing the labels of instance %s", instanceID)
	}

	var args []any
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		args = append(args, instanceID, name, labels[name])
	}

	_, err = storage.Exec(ctx, tx, `INSERT INTO instance_labels (instance_id, name, value) VALUES `+
		strings.TrimSuffix(strings.Repeat("(?, ?, ?), ", len(labels)), ", "), args...)

	return failure.While(err, "storing the labels of instance %s", instanceID)
}
