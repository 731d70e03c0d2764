package jobs

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts the items that jobs process, and reports the result of each job's newest run. The counters cover only this
// replica; the results are the same on all replicas.
type Metrics struct {
	items *prometheus.CounterVec
}

// NewMetrics registers the metrics of the jobs. They query the database at each scrape.
func NewMetrics(registerer prometheus.Registerer, runner Runner) *Metrics {
	metrics := &Metrics{items: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_job_items_total",
		Help: "Items processed by this replica's job runs, by job and result: changed, unchanged, failed.",
	}, []string{"name", "result"})}

	registerer.MustRegister(metrics.items, results{runner})

	for _, job := range runner.Jobs {
		for _, result := range []string{"changed", "unchanged", "failed"} {
			metrics.items.WithLabelValues(job.Name, result)
		}
	}

	return metrics
}

// ran adds the results of a run to the counters.
func (m *Metrics) ran(job Job, result Result) {
	if m == nil {
		return
	}

	m.items.WithLabelValues(job.Name, "changed").Add(float64(result.Changed))
	m.items.WithLabelValues(job.Name, "unchanged").Add(float64(result.Unchanged))
	m.items.WithLabelValues(job.Name, "failed").Add(float64(result.Failed))
}

// results is a prometheus.Collector that exposes the newest result of each job. While the database is down, the metrics are absent.
type results struct{ runner Runner }

func dueMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_job_due", "Items that were due in the newest run of a job.", []string{"name"}, nil)
}

func heldMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_job_held",
		"1 if the newest run of a job has changed nothing because the number of due items exceeded the job's limit, otherwise 0.", []string{"name"}, nil)
}

func failedMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_job_failing", "1 if the newest run of a job had an error, otherwise 0.", []string{"name"}, nil)
}

func finishedMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_job_last_run_timestamp_seconds", "When the newest run of a job ended, in Unix time.", []string{"name"}, nil)
}

// Describe implements prometheus.Collector.
func (results) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- dueMetric()

	descriptions <- heldMetric()

	descriptions <- failedMetric()

	descriptions <- finishedMetric()
}

// Collect implements prometheus.Collector.
func (r results) Collect(metrics chan<- prometheus.Metric) {
	for _, job := range r.runner.Jobs {
		var result Result

		finished, found := r.runner.Reports.ForScrape(reportID(job), &result, r.runner.Log)
		if !found {
			continue
		}

		metrics <- gauge(dueMetric(), float64(result.Due), job.Name)

		metrics <- gauge(heldMetric(), number(result.Held), job.Name)

		metrics <- gauge(failedMetric(), number(len(result.Errors) > 0), job.Name)

		metrics <- gauge(finishedMetric(), float64(finished.Unix()), job.Name)
	}
}

func gauge(description *prometheus.Desc, value float64, job string) prometheus.Metric {
	return prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, job)
}

func number(is bool) float64 {
	if is {
		return 1
	}

	return 0
}
