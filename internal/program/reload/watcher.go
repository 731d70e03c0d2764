package reload

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

// Every is the interval at which a Watcher reads its files. A valid new file is in use after at most this time.
const Every = 10 * time.Second

// Watcher reads the files of its values at an interval. If the files of a value have changed and are valid, it replaces the
// value. Add all values before the watcher runs.
type Watcher struct {
	log      logrus.FieldLogger
	clock    clock.WithTicker
	rejected *prometheus.GaugeVec
	expiry   *prometheus.GaugeVec
	watched  []*watched
}

// watched is a Value without its type parameter, so one Watcher can have values of all types.
type watched struct {
	name  string
	check func() (changed bool, err error)
	// replaced is called after check has replaced the value.
	replaced func()
	// problem is the text of the last logged error. If the same error occurs again, it is not logged again.
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

// Watch adds a value to a watcher that is not running yet. If use is not nil, Watch calls use with the current value. Later, the
// goroutine of the watcher calls use with each new value.
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

// Part returns the lifecycle.Part that checks all values at the interval Every.
func (w *Watcher) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "files", Every: Every, Work: w.checkAll, Clock: w.clock, Log: w.log}.Part()
}

// checkAll checks all values once. It always returns nil, because check logs the errors and sets the metric.
func (w *Watcher) checkAll(context.Context) error {
	for _, each := range w.watched {
		w.check(each)
	}

	return nil
}

// check checks one value, reports errors in the log, and sets the metric of the value.
func (w *Watcher) check(each *watched) {
	changed, err := each.check()
	log, rejected := w.log.WithField("file", each.name), w.rejected.WithLabelValues(each.name)

	switch {
	case err != nil:
		rejected.Set(1)

		if each.problem != err.Error() {
			log.WithError(err).Error("rejecting a changed file: the last valid contents stay in use")
		}

		each.problem = err.Error()
	case changed:
		rejected.Set(0)

		each.problem = ""
		each.replaced()
		log.Info("reloaded a changed file")
	}
}
