package reload

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/lifecycle"
)

// Every is how often files are looked at.
const Every = 10 * time.Second

// file is what a Watcher knows of a Value.
type file interface {
	look() (changed bool, err error)
	label() string
}

func (v *Value[T]) label() string { return v.name }

// Watcher has Values made anew when their files change.
type Watcher struct {
	log      logrus.FieldLogger
	clock    clock.WithTicker
	rejected *prometheus.GaugeVec
	watched  []*watched
}

type watched struct {
	file

	problem string
	// taken is called after a new value was taken over.
	taken func()
}

// NewWatcher returns a watcher of nothing yet, and registers its metric.
func NewWatcher(log logrus.FieldLogger, clock clock.WithTicker, metrics prometheus.Registerer) *Watcher {
	rejected := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "environment_broker_files_rejected",
		Help: "1 while a file that changed is not used because it is wrong or cannot be read, and what it held before goes on.",
	}, []string{"file"})
	metrics.MustRegister(rejected)

	return &Watcher{log: log, clock: clock, rejected: rejected}
}

// Watch adds a value before the watcher runs. The function, if any, is called now and after each change.
func Watch[T any](watcher *Watcher, value *Value[T], taken func(T)) {
	if taken == nil {
		taken = func(T) {}
	}

	taken(value.Get())
	watcher.rejected.WithLabelValues(value.name).Set(0)
	watcher.watched = append(watcher.watched, &watched{file: value, taken: func() { taken(value.Get()) }})
}

// Part looks at the files in the background.
func (w *Watcher) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "files", Every: Every, Work: w.look, Clock: w.clock, Log: w.log}.Part()
}

func (w *Watcher) look(context.Context) error {
	for _, each := range w.watched {
		w.lookAt(each)
	}

	return nil
}

// lookAt tells of a change, and of what is wrong once.
func (w *Watcher) lookAt(each *watched) {
	changed, err := each.look()
	log, metric := w.log.WithField("file", each.label()), w.rejected.WithLabelValues(each.label())

	switch {
	case err != nil:
		metric.Set(1)

		if each.problem != err.Error() {
			log.WithError(err).Error("a file that changed cannot be used: what it held before goes on")
		}

		each.problem = err.Error()
	case changed:
		metric.Set(0)

		each.problem = ""
		each.taken()
		log.Info("a file that changed is used from now on")
	}
}
