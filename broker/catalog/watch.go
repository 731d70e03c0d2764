package catalog

import (
	"context"
	"io/fs"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

// checkEvery is the interval between two checks of the files. A check reads all files, about 30 KiB.
const checkEvery = 5 * time.Second

// Watcher reloads a catalog when its files change. Invalid files do not change the catalog: the error is logged and
// recorded once, and Problem and a metric report it until the files are valid.
type Watcher struct {
	Catalog *Catalog
	Files   fs.FS
	// Record writes the result of a reload to the audit log. If Record fails, the Watcher calls it again with the same result.
	Record func(ctx context.Context, reload Reload) error
	Clock  clock.WithTicker
	Log    logrus.FieldLogger
}

// Reload is the result of reading changed files. If Problem is empty, the catalog has the content of the files.
type Reload struct {
	// Before and After are the entity tags of the catalog before and after the reload. They are equal if the files are invalid or
	// their changes do not affect the published catalog.
	Before, After string
	// Problem says why the files are invalid, or is empty.
	Problem string
}

// Part returns the lifecycle.Part that watches the files. It reloads them when two successive checks find the same change,
// because a file may be incomplete at the first check.
func (w Watcher) Part() lifecycle.Part {
	loaded := w.Catalog.current.Load().sum
	last := loaded

	var unrecorded []Reload

	return lifecycle.Periodic{Name: "catalog", Every: checkEvery, Clock: w.Clock, Log: w.Log, Work: func(ctx context.Context) error {
		found := fingerprint(w.Files)
		stable := found == last
		last = found

		if stable && found != loaded {
			loaded = found
			unrecorded = append(unrecorded, w.Reload())
		}

		for len(unrecorded) > 0 {
			if err := w.Record(ctx, unrecorded[0]); err != nil {
				return err
			}

			unrecorded = unrecorded[1:]
		}

		return nil
	}}.Part()
}

// Reload reads the files immediately, without waiting for a second check, and logs the result.
func (w Watcher) Reload() Reload {
	now, before := w.Clock.Now(), w.Catalog.Published().ETag

	if err := w.Catalog.Reload(w.Files); err != nil {
		w.Catalog.problem.Store(&Problem{Text: err.Error(), Since: now})
		w.Log.WithError(err).Error("the catalog's files are invalid, so the catalog remains unchanged")

		return Reload{Before: before, After: before, Problem: err.Error()}
	}

	w.Catalog.problem.Store(nil)
	w.Log.Info("the catalog was reloaded from changed files")

	return Reload{Before: before, After: w.Catalog.Published().ETag}
}

// Problem says why changed files could not be loaded, and when they were read.
type Problem struct {
	Text  string
	Since time.Time
}

// Problem returns why the latest files could not be loaded, or nil if the catalog has their content. The result can differ
// between replicas, because each reads its own copy of the files.
func (c *Catalog) Problem() *Problem { return c.problem.Load() }

// Metric returns a gauge that is 1 while the files are invalid. An alert in resources/alerts.yaml uses it.
func (c *Catalog) Metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "environment_broker", Subsystem: "catalog", Name: "rejected",
		Help: "1 while the files of the catalog are invalid and the catalog stays unchanged, else 0.",
	}, func() float64 {
		if c.Problem() != nil {
			return 1
		}

		return 0
	})
}
