package storage

import (
	"context"
	"fmt"
)

// missingPage is the number of instances that one call of AddPage examines.
const missingPage = 500

// Missing finds instances that lack a row in another table, and adds the missing rows. It reads the instances in pages, so that
// no statement runs for seconds in a large database.
type Missing struct {
	// Table is the table that may lack rows. Key is its column with the instance ID.
	Table, Key string
	// Condition is the SQL condition that selects the instances that need a row. It may use the columns runtime_id and provider of
	// the instance.
	Condition string
	// Add inserts the row for an instance. It does nothing if the row already exists.
	Add func(ctx context.Context, tx Tx, instanceID string) error
}

// AddPage examines a page of instances, in the order of their IDs, starting after the given ID. It adds their missing rows in one
// transaction. It returns the ID after which the next page starts, or "" if this page was the last one.
func (m Missing) AddPage(ctx context.Context, db *DB, after string) (next string, err error) {
	page, err := Select[struct {
		ID      string `db:"id"`
		Missing bool   `db:"missing"`
	}](ctx, db.Reader(), fmt.Sprintf(`SELECT id, %s AND (SELECT 1 FROM %s AS other WHERE other.%s = page.id) IS NULL AS missing
		FROM (SELECT id, runtime_id, provider FROM instances WHERE id > ? ORDER BY id %s) AS page ORDER BY id`,
		m.Condition, m.Table, m.Key, Page(missingPage, 0)), after)
	if err != nil {
		return "", fmt.Errorf("finding instances without a row in %s: %w", m.Table, err)
	}

	var missing []string

	for _, instance := range page {
		if instance.Missing {
			missing = append(missing, instance.ID)
		}
	}

	if len(page) == missingPage {
		next = page[len(page)-1].ID
	}

	if len(missing) == 0 {
		return next, nil
	}

	return next, db.InTx(ctx, func(tx Tx) error {
		for _, id := range missing {
			if err := m.Add(ctx, tx, id); err != nil {
				return err
			}
		}

		return nil
	})
}
