package catalog

import (
	"context"
	"io/fs"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/lifecycle"
)

// lookEvery is how often the files are looked at.
const lookEvery = 5 * time.Second

// Watch has a catalog follow its files. Files that are wrong leave it as it was; that is told once in the log, and by Problem and a metric
// for as long as they are wrong.
type Watch struct {
	Catalog *Catalog
	Files   fs.FS
	// Since returns since when what has the entity tag is offered, on whatever replica.
	Since func(ctx context.Context, etag string, now time.Time) (time.Time, error)
	Clock clock.WithTicker
	Log   logrus.FieldLogger
}

// Part returns the part that looks at the files. It takes them once they are the same at two looks: somebody may be writing them.
func (w Watch) Part() lifecycle.Part {
	taken := w.Catalog.current.Load().sum
	last := taken

	return lifecycle.Periodic{Name: "catalog", Every: lookEvery, Clock: w.Clock, Log: w.Log, Work: func(ctx context.Context) error {
		found := fingerprint(w.Files)
		settled := found == last
		last = found

		if settled && found != taken {
			taken = found
			w.Look()
		}

		return w.date(ctx)
	}}.Part()
}

// date finds out since when the catalog is what it is, unless that is known.
func (w Watch) date(ctx context.Context) error {
	published := w.Catalog.Published()
	if !published.Changed.IsZero() {
		return nil
	}

	since, err := w.Since(ctx, published.ETag, w.Clock.Now())
	if err != nil {
		return err
	}

	w.Catalog.dated.Store(&dated{etag: published.ETag, since: since})

	return nil
}

// Look takes the files as they are now.
func (w Watch) Look() {
	now := w.Clock.Now()

	if err := w.Catalog.Reload(w.Files); err != nil {
		w.Catalog.problem.Store(&Problem{Text: err.Error(), Since: now})
		w.Log.WithError(err).Error("the files of the catalog are wrong: the catalog stays as it was")

		return
	}

	w.Catalog.problem.Store(nil)
	w.Log.Info("the files of the catalog have changed: the catalog is the new one")
}

// Problem says why the files of the catalog were not taken.
type Problem struct {
	Text  string
	Since time.Time
}

// Problem returns what is wrong with the files that were read last, nil when they are the catalog.
func (c *Catalog) Problem() *Problem { return c.problem.Load() }

// Metric tells Prometheus whether the files of the catalog were taken.
func (c *Catalog) Metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "environment_broker", Subsystem: "catalog", Name: "rejected",
		Help: "1: the files of the catalog are wrong, and it stays as it was. 0: they are the catalog.",
	}, func() float64 {
		if c.Problem() != nil {
			return 1
		}

		return 0
	})
}
