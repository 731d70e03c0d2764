package keyrotation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// window is how many rows a query looks at, together how many are changed in one transaction: so few that who wants one of
	// them does not notice.
	window   = 500
	together = 25
	// pause leaves the database to others after each window.
	pause = 20 * time.Millisecond
)

// found is what a look at a table found.
type found struct {
	resealed int
	// overtaken are rows that somebody changed between the look and the change.
	overtaken int
	// left counts the rows that could not be opened, by the key that they name. That is no fault of the look: a key may be gone.
	left       map[string]int
	firstError error
}

func (f *found) unreadable() int {
	sum := 0
	for _, count := range f.left {
		sum += count
	}

	return sum
}

// sealedRow is a row with its envelope, which is empty when it is sealed with the first key.
type sealedRow struct {
	ID       string `db:"id"`
	Envelope string `db:"envelope"`
}

// look goes once through a table, by its primary key.
func (r *Resealer) look(ctx context.Context, column storage.SealedColumn) (found, error) {
	result := found{left: map[string]int{}}
	prefix := r.Keys.Prefix()
	query := fmt.Sprintf(`SELECT id, CASE WHEN substr(%[2]s, 1, ?) = ? THEN '' ELSE %[2]s END AS envelope
		FROM %[1]s WHERE id > ? ORDER BY id LIMIT ?`, column.Table, column.Column)

	for after := ""; ; {
		rows, err := storage.Select[sealedRow](ctx, r.DB.Reader(), query, utf8.RuneCountInString(prefix), prefix, after, window)
		if err != nil {
			return result, fmt.Errorf("looking for rows of %s that are sealed with a former key: %w", column.Table, err)
		}

		last := len(rows) < window
		if len(rows) > 0 {
			after = rows[len(rows)-1].ID
		}

		rows = slices.DeleteFunc(rows, func(row sealedRow) bool { return row.Envelope == "" })
		for batch := range slices.Chunk(rows, together) {
			if err := r.exchange(ctx, column, batch, &result); err != nil {
				return result, err
			}
		}

		if last {
			return result, nil
		}

		if err := lifecycle.Pause(ctx, r.Clock, pause); err != nil {
			return result, err
		}
	}
}

// exchange seals the rows anew, in the order of their ids like every change of several rows. A row that somebody has changed since
// it was read stays as it is.
func (r *Resealer) exchange(ctx context.Context, column storage.SealedColumn, rows []sealedRow, result *found) error {
	statement := fmt.Sprintf(`UPDATE %[1]s SET %[2]s = ? WHERE id = ? AND %[2]s = ?`, column.Table, column.Column)
	tried, resealed := 0, 0

	err := r.DB.InTx(ctx, func(tx storage.Tx) error {
		for _, row := range rows {
			anew, err := r.Keys.Reseal(row.Envelope, column.Place(row.ID))
			if err != nil {
				result.left[secret.KeyOf(row.Envelope)]++
				result.firstError = cmp.Or(result.firstError, err)

				continue
			}

			changed, err := storage.Exec(ctx, tx, statement, anew, row.ID, row.Envelope)
			if err != nil {
				return fmt.Errorf("sealing row %s of %s anew: %w", row.ID, column.Table, err)
			}

			tried++
			resealed += int(changed)
		}

		return nil
	})
	if err != nil {
		return err
	}

	result.resealed += resealed
	result.overtaken += tried - resealed

	return nil
}
