package keyrotation

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

// every is how often rows are looked for that are sealed with a former key. Another replica may have sealed some since.
const every = time.Hour

// Options is what a Resealer needs.
type Options struct {
	DB      *storage.DB
	Keys    *secret.Keyring
	Columns []storage.SealedColumn
	Clock   clock.WithTicker
	Log     logrus.FieldLogger
	// Metrics is where it registers how many rows are left.
	Metrics prometheus.Registerer
}

// Resealer seals anew what was sealed with a former key.
type Resealer struct {
	Options

	left  *prometheus.GaugeVec
	anews *prometheus.CounterVec
}

// New returns a resealer; its Part makes it work. Of each registry there can be one.
func New(options Options) *Resealer {
	r := &Resealer{
		Options: options,
		left: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "environment_broker_rows_not_resealed",
			Help: "Rows that are sealed with another key than the first of APP_DATABASE_SECRET_KEYS and could not be opened.",
		}, []string{"table"}),
		anews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "environment_broker_rows_resealed_total",
			Help: "Rows that this replica has sealed anew with the first of APP_DATABASE_SECRET_KEYS.",
		}, []string{"table"}),
	}
	options.Metrics.MustRegister(r.left, r.anews)

	return r
}

// Part seals anew in the background.
func (r *Resealer) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "key rotation", Every: every, Work: r.Rotate, Clock: r.Clock, Log: r.Log}.Part()
}

// Rotate looks through every table until a look finds nothing more to seal anew, and then tells which keys are needed still. Replicas
// that do so at the same time, and those that change rows meanwhile, do not disturb each other.
func (r *Resealer) Rotate(ctx context.Context) error {
	for {
		moved := false
		needed := map[string]int{}

		for _, column := range r.Columns {
			found, err := r.look(ctx, column)
			if err != nil {
				return err
			}

			r.tellTable(column.Table, found)

			moved = moved || found.resealed+found.overtaken > 0

			for key, count := range found.left {
				needed[key] += count
			}
		}

		if !moved {
			r.tellKeys(needed)

			return nil
		}
	}
}

// tellTable passes on what a look at a table found.
func (r *Resealer) tellTable(table string, found found) {
	log := r.Log.WithField("table", table)
	unreadable := found.unreadable()

	r.left.WithLabelValues(table).Set(float64(unreadable))
	r.anews.WithLabelValues(table).Add(float64(found.resealed))

	if found.resealed > 0 {
		log.WithField("rows", found.resealed).Info("rows are sealed anew with the first key")
	}

	if unreadable > 0 {
		log.WithError(found.firstError).WithField("rows", unreadable).
			Error("rows cannot be opened with any key of APP_DATABASE_SECRET_KEYS, the first of them for this reason")
	}
}

// tellKeys says of each former key whether it may go.
func (r *Resealer) tellKeys(needed map[string]int) {
	for _, key := range r.Keys.Former() {
		log := r.Log.WithField("key", key)

		if rows := needed[key]; rows > 0 {
			log.WithField("rows", rows).Warn("rows are sealed with a former key, it has to stay")
		} else {
			log.Info("no row is sealed with this key: when no replica seals with it, it may be removed")
		}
	}
}
