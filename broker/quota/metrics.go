package quota

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
)

const (
	// scrapeTimeout limits the queries that a scrape makes. scrapeInterval is the minimum interval between these queries, because
	// they count all instances.
	scrapeTimeout  = 2 * time.Second
	scrapeInterval = time.Minute
)

// Metrics counts the requests rejected because of a quota, and reports how much of each quota is used.
type Metrics struct {
	refusals *prometheus.CounterVec
}

// NewMetrics registers the metrics of the quotas. Scrapes query the database at most once a minute.
func NewMetrics(registerer prometheus.Registerer, checker Checker, clock clock.PassiveClock, log logrus.FieldLogger) *Metrics {
	metrics := &Metrics{refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_quota_refusals_total",
		Help: "Orders, updates and operations that this replica has rejected because a quota was used up, by quota.",
	}, []string{"quota"})}

	registerer.MustRegister(metrics.refusals, &shares{checker: checker, clock: clock, log: log})

	return metrics
}

func (m *Metrics) refused(quota string) {
	if m != nil {
		m.refusals.WithLabelValues(quota).Inc()
	}
}

// shares is a prometheus.Collector for the fullest group of each quota. While the database is down, the metric is absent.
type shares struct {
	checker Checker
	clock   clock.PassiveClock
	log     logrus.FieldLogger

	mutex sync.Mutex
	read  time.Time
	last  []Status
}

func shareMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_quota_highest_ratio",
		"Used share of the limit in the fullest group of a quota. 1 means used up. All replicas report the same value.", []string{"quota"}, nil)
}

// Describe implements prometheus.Collector.
func (s *shares) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- shareMetric() }

// Collect implements prometheus.Collector.
func (s *shares) Collect(metrics chan<- prometheus.Metric) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if len(s.checker.quotas()) == 0 {
		return
	}

	if now := s.clock.Now(); s.read.IsZero() || now.Sub(s.read) >= scrapeInterval {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()

		list, err := s.checker.List(ctx, Filter{Size: 1})
		if err != nil {
			s.log.WithError(err).Warn("metrics: counting instances failed; environment_broker_quota_highest_ratio is missing until a count succeeds")

			return
		}

		s.read, s.last = now, list
	}

	for _, status := range s.last {
		share := 0.
		if len(status.Groups) > 0 {
			share = status.Groups[0].share()
		}

		metrics <- prometheus.MustNewConstMetric(shareMetric(), prometheus.GaugeValue, share, status.Quota.Name)
	}
}
