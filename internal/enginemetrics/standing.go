package enginemetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/storage/operations"
)

// standingTimeout bounds the question of a scrape: one that takes longer meets a database in trouble.
const standingTimeout = 2 * time.Second

// Standings counts operations.
type Standings interface {
	Standing(ctx context.Context) ([]operations.Standing, error)
}

// queue tells how many operations have not ended, asked at each scrape: whoever asks, on whatever replica, gets the same.
type queue struct {
	standings Standings
	clock     clock.PassiveClock
	log       logrus.FieldLogger

	unfinished, oldest *prometheus.Desc
}

// Queue returns the metrics of all that waits and runs. A scrape during which the database does not answer has none of them.
func Queue(standings Standings, clock clock.PassiveClock, log logrus.FieldLogger) prometheus.Collector {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, []string{labelKind, labelState}, nil)
	}

	return queue{
		standings: standings, clock: clock, log: log,
		unfinished: describe("operations_unfinished",
			"Operations in the database that have not ended, by state: pending, in progress, canceling. All replicas tell the same."),
		oldest: describe("operations_oldest_seconds",
			"How long ago the oldest operation was accepted of those that have not ended, by state. All replicas tell the same."),
	}
}

// Describe implements prometheus.Collector.
func (q queue) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- q.unfinished

	descriptions <- q.oldest
}

// Collect implements prometheus.Collector.
func (q queue) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), standingTimeout)
	defer cancel()

	found, err := q.standings.Standing(ctx)
	if err != nil {
		q.log.WithError(err).Warn("metrics: unfinished operations could not be counted")

		return
	}

	for _, each := range found {
		labels := []string{each.Kind, string(each.State)}
		age := max(0, q.clock.Since(each.Oldest.Time)).Seconds()

		metrics <- prometheus.MustNewConstMetric(q.unfinished, prometheus.GaugeValue, float64(each.Count), labels...)

		metrics <- prometheus.MustNewConstMetric(q.oldest, prometheus.GaugeValue, age, labels...)
	}
}
