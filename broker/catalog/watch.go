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

// Watch has a catalog follow its files. Files that are wrong leave it as it was; that is told once in the log and by Record,
// and by Problem and a metric for as long as they are wrong.
type Watch struct {
	Catalog *Catalog
	Files   fs.FS
	// Since returns since when what has the entity tag is offered, on whatever replica.
	Since func(ctx context.Context, etag string, now time.Time) (time.Time, error)
	// Record writes down for good that files have changed, and what came of it. What it could not write, it is asked to write again.
	Record func(ctx context.Context, event Event) error
	Clock  clock.WithTicker
	Log    logrus.FieldLogger
}

// Event is a change of the files.
type Event struct {
	// Before and After are the entity tags of the catalog. They are the same where the files are wrong, or mean the same.
	Before, After string
	// Problem is what is wrong with the files, empty where they are the catalog now.
	Problem string
}

// Part returns the part that looks at the files. It takes them once they are the same at two looks: somebody may be writing them.
func (w Watch) Part() lifecycle.Part {
	taken := w.Catalog.current.Load().sum
	last := taken

	var untold []Event

	return lifecycle.Periodic{Name: "catalog", Every: lookEvery, Clock: w.Clock, Log: w.Log, Work: func(ctx context.Context) error {
		found := fingerprint(w.Files)
		settled := found == last
		last = found

		if settled && found != taken {
			taken = found
			untold = append(untold, w.Look())
		}

		for len(untold) > 0 {
			if err := w.Record(ctx, untold[0]); err != nil {
				return err
			}

			untold = untold[1:]
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
func (w Watch) Look() Event {
	now, before := w.Clock.Now(), w.Catalog.Published().ETag

	if err := w.Catalog.Reload(w.Files); err != nil {
		w.Catalog.problem.Store(&Problem{Text: err.Error(), Since: now})
		w.Log.WithError(err).Error("the files of the catalog are wrong: the catalog stays as it was")

		return Event{Before: before, After: before, Problem: err.Error()}
	}

	w.Catalog.problem.Store(nil)
	w.Log.Info("the files of the catalog have changed: the catalog is the new one")

	return Event{Before: before, After: w.Catalog.Published().ETag}
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
