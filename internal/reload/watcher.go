package reload

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/lifecycle"
)

// Every is the interval at which files are read. It bounds how long a service uses outdated contents.
const Every = 10 * time.Second

// Watcher reads the files of values periodically and replaces the values whose files have changed.
type Watcher struct {
	log      logrus.FieldLogger
	clock    clock.WithTicker
	rejected *prometheus.GaugeVec
	expiry   *prometheus.GaugeVec
	watched  []*watched
}

// watched is a Value without its type.
type watched struct {
	name  string
	check func() (changed bool, err error)
	// replaced runs after the value was replaced.
	replaced func()
	// problem is the error logged last, so that it is logged once.
	problem string
}

// NewWatcher returns a watcher without values and registers its metrics.
func NewWatcher(log logrus.FieldLogger, clock clock.WithTicker, metrics prometheus.Registerer) *Watcher {
	rejected := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "environment_broker_files_rejected",
		Help: "1 while a changed file is rejected as invalid or unreadable; its last valid contents stay in use.",
	}, []string{"file"})
	expiry := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "environment_broker_certificate_expiry_timestamp_seconds",
		Help: "Expiry of the certificate in use, as a Unix time in seconds.",
	}, []string{"use"})
	metrics.MustRegister(rejected, expiry)

	return &Watcher{log: log, clock: clock, rejected: rejected, expiry: expiry}
}

// Watch adds a value to the watcher, which must not run yet. If use is not nil, it is called with the present value now and with each new
// value later, in the goroutine of the watcher.
func Watch[T any](watcher *Watcher, value *Value[T], use func(T)) {
	if use == nil {
		use = func(T) {}
	}

	use(value.Get())
	watcher.rejected.WithLabelValues(value.name).Set(0)
	watcher.watched = append(watcher.watched, &watched{
		name: value.name, check: value.check, replaced: func() { use(value.Get()) },
	})
}

// Part returns the background work of the watcher.
func (w *Watcher) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "files", Every: Every, Work: w.checkAll, Clock: w.clock, Log: w.log}.Part()
}

func (w *Watcher) checkAll(context.Context) error {
	for _, each := range w.watched {
		w.check(each)
	}

	return nil
}

func (w *Watcher) check(each *watched) {
	changed, err := each.check()
	log, rejected := w.log.WithField("file", each.name), w.rejected.WithLabelValues(each.name)

	switch {
	case err != nil:
		rejected.Set(1)

		if each.problem != err.Error() {
			log.WithError(err).Error("rejecting a changed file: its last valid contents stay in use")
		}

		each.problem = err.Error()
	case changed:
		rejected.Set(0)

		each.problem = ""
		each.replaced()
		log.Info("using a changed file")
	}
}
