package keyrotation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// interval is the time between two rotations. A single rotation would not be enough, because a replica that still has the
	// previous configuration seals new rows with an old key.
	interval = time.Hour
	// readBatch is the number of rows that one query reads. writeBatch is the number of rows that one transaction updates. writeBatch
	// is small, so that other writers are not delayed.
	readBatch  = 500
	writeBatch = 25
)

// Options configures a Rotator.
type Options struct {
	DB      *storage.DB
	Keys    *secret.Keyring
	Columns []storage.SealedColumn
	Clock   clock.WithTicker
	Log     logrus.FieldLogger
	// Metrics registers the metrics. A registry can serve only one Rotator.
	Metrics prometheus.Registerer
}

// Rotator re-encrypts rows that are sealed with an old key.
type Rotator struct {
	Options

	unreadable  *prometheus.GaugeVec
	reencrypted *prometheus.CounterVec
}

// New registers the metrics and returns a Rotator, whose Part the service must run.
func New(options Options) *Rotator {
	r := &Rotator{
		Options: options,
		unreadable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "environment_broker_unreadable_rows",
			Help: "Sealed rows that no key of APP_DATABASE_SECRET_KEYS can decrypt.",
		}, []string{"table"}),
		reencrypted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "environment_broker_reencrypted_rows_total",
			Help: "Rows that this replica has re-encrypted with the first key of APP_DATABASE_SECRET_KEYS.",
		}, []string{"table"}),
	}
	options.Metrics.MustRegister(r.unreadable, r.reencrypted)

	return r
}

// Part returns a lifecycle.Part that calls Rotate every hour.
func (r *Rotator) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "key rotation", Every: interval, Work: r.Rotate, Clock: r.Clock, Log: r.Log}.Part()
}

// Rotate scans every table until a scan finds nothing to re-encrypt, and then logs which old keys are still needed. It returns the
// first database error. Rows that no key can decrypt are logged and counted, but do not cause an error.
func (r *Rotator) Rotate(ctx context.Context) error {
	for {
		moved := false
		needed := map[string]int{}

		for _, column := range r.Columns {
			result, err := r.scan(ctx, column)
			if err != nil {
				return err
			}

			r.reportTable(column.Table, result)

			moved = moved || result.reencrypted+result.overtaken > 0

			for key, count := range result.unreadable {
				needed[key] += count
			}
		}

		if !moved {
			r.reportKeys(needed)

			return nil
		}
	}
}

// reportTable updates the metrics of the table and logs the result of a scan.
func (r *Rotator) reportTable(table string, result scanResult) {
	log := r.Log.WithField("table", table)

	unreadable := 0
	for _, count := range result.unreadable {
		unreadable += count
	}

	r.unreadable.WithLabelValues(table).Set(float64(unreadable))
	r.reencrypted.WithLabelValues(table).Add(float64(result.reencrypted))

	if result.reencrypted > 0 {
		log.WithField("rows", result.reencrypted).Info("re-encrypted rows with the first key of APP_DATABASE_SECRET_KEYS")
	}

	if unreadable > 0 {
		log.WithError(result.firstError).WithField("rows", unreadable).
			Error("some rows cannot be decrypted with any key of APP_DATABASE_SECRET_KEYS; the error is from the first such row")
	}
}

// reportKeys logs, for each old key, whether operators can remove it. needed contains the number of rows that still need each key.
func (r *Rotator) reportKeys(needed map[string]int) {
	for _, key := range r.Keys.Former() {
		log := r.Log.WithField("key", key)

		if rows := needed[key]; rows > 0 {
			log.WithField("rows", rows).Warn("the old key is still needed: rows that it sealed could not be re-encrypted")
		} else {
			log.Info("no row is sealed with this key: remove it once no replica uses it to seal rows")
		}
	}
}

// scanResult is the result of scanning one table.
type scanResult struct {
	reencrypted int
	// overtaken is the number of rows that another writer changed after the scan had read them.
	overtaken int
	// unreadable contains the number of rows that no key can decrypt, keyed by the name of the key in the envelope. firstError is
	// the error for the first such row. The scan continues after such rows, because their keys may be lost forever.
	unreadable map[string]int
	firstError error
}

// sealedRow is a row of a table with a sealed column. Envelope is empty if the row is already sealed with the first key.
type sealedRow struct {
	ID       string `db:"id"`
	Envelope string `db:"envelope"`
}

// scan reads a table once, in the order of its primary key, and re-encrypts the rows that are sealed with an old key. The database
// itself compares the prefixes of the envelopes, so the envelopes of rows that are already sealed with the first key are not
// transferred.
func (r *Rotator) scan(ctx context.Context, column storage.SealedColumn) (scanResult, error) {
	result := scanResult{unreadable: map[string]int{}}
	prefix := r.Keys.Prefix()
	query := fmt.Sprintf(`SELECT id, CASE WHEN substr(%[2]s, 1, ?) = ? THEN '' ELSE %[2]s END AS envelope
		FROM %[1]s WHERE id > ? ORDER BY id LIMIT ?`, column.Table, column.Column)

	for after := ""; ; {
		started := r.Clock.Now()

		rows, err := storage.Select[sealedRow](ctx, r.DB.Reader(), query, utf8.RuneCountInString(prefix), prefix, after, readBatch)
		if err != nil {
			return result, fmt.Errorf("finding rows of %s that are sealed with an old key: %w", column.Table, err)
		}

		read := r.Clock.Since(started)
		last := len(rows) < readBatch
		if len(rows) > 0 {
			after = rows[len(rows)-1].ID
		}

		rows = slices.DeleteFunc(rows, func(row sealedRow) bool { return row.Envelope == "" })
		for batch := range slices.Chunk(rows, writeBatch) {
			if err := r.reencrypt(ctx, column, batch, &result); err != nil {
				return result, err
			}
		}

		if last {
			return result, nil
		}

		if err := lifecycle.Rest(ctx, r.Clock, read); err != nil {
			return result, err
		}
	}
}

// boundValue contains the name and the value of a bound column.
type boundValue struct {
	Name  string `db:"name"`
	Value string `db:"value"`
}

// bind adds the bound columns to an envelope that an older release sealed without them. The transaction must have locked the row
// by changing it.
func (r *Rotator) bind(ctx context.Context, tx storage.Tx, column storage.SealedColumn, id, envelope string) error {
	if len(column.Bound) == 0 {
		return nil
	}

	plain, err := r.Keys.Open(envelope, column.Place(id))
	if err != nil {
		return fmt.Errorf("opening a new envelope: %w", err)
	}

	sealed, err := storage.BoundOf(plain)
	if err != nil || sealed != nil {
		return nil //nolint:nilerr // reading the row reports a value that is not a JSON object
	}

	var (
		queries []string
		args    []any
	)

	for _, name := range column.Bound {
		queries = append(queries, fmt.Sprintf(`SELECT '%[1]s' AS name, %[1]s AS value FROM %[2]s WHERE id = ? AND %[1]s <> ''`, name, column.Table))
		args = append(args, id)
	}

	values, err := storage.Select[boundValue](ctx, tx, strings.Join(queries, " UNION ALL "), args...)
	if err != nil {
		return fmt.Errorf("reading the columns: %w", err)
	}

	bound := storage.Bound{}
	for _, each := range values {
		bound[each.Name] = each.Value
	}

	if plain, err = bound.Prepend(plain); err != nil {
		return fmt.Errorf("adding the columns: %w", err)
	}

	_, err = storage.Exec(ctx, tx, fmt.Sprintf(`UPDATE %s SET %s = ? WHERE id = ?`, column.Table, column.Column), r.Keys.Seal(plain, column.Place(id)), id)

	return failure.While(err, "storing the envelope")
}

// reencrypt updates the rows in the order of their IDs. All statements on several rows use this order, so that transactions do not
// deadlock. A row that has changed since it was read is not updated, and is counted as overtaken.
func (r *Rotator) reencrypt(ctx context.Context, column storage.SealedColumn, rows []sealedRow, result *scanResult) error {
	statement := fmt.Sprintf(`UPDATE %[1]s SET %[2]s = ? WHERE id = ? AND %[2]s = ?`, column.Table, column.Column)
	tried, reencrypted := 0, 0

	err := r.DB.InTx(ctx, func(tx storage.Tx) error {
		for _, row := range rows {
			envelope, err := r.Keys.Reencrypt(row.Envelope, column.Place(row.ID))
			if err != nil {
				result.unreadable[secret.KeyOf(row.Envelope)]++
				result.firstError = cmp.Or(result.firstError, err)

				continue
			}

			changed, err := storage.Exec(ctx, tx, statement, envelope, row.ID, row.Envelope)
			if err != nil {
				return fmt.Errorf("re-encrypting row %s of %s: %w", row.ID, column.Table, err)
			}

			if changed > 0 {
				err = r.bind(ctx, tx, column, row.ID, envelope)
			}

			if err != nil {
				return fmt.Errorf("sealing the columns of row %s of %s: %w", row.ID, column.Table, err)
			}

			tried++
			reencrypted += int(changed)
		}

		return nil
	})
	if err != nil {
		return err
	}

	result.reencrypted += reencrypted
	result.overtaken += tried - reencrypted

	return nil
}
