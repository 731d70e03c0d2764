package service

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/storage/reports"
)

const (
	// accountsReportID is the ID of the report in package reports.
	accountsReportID = "accounts"
	// accountsReportEvery is the interval between two reports. accountsCheckEvery limits how late a report starts after it is
	// due.
	accountsReportEvery = 5 * time.Minute
	accountsCheckEvery  = time.Minute
)

// AccountsReporter counts the accounts of the account pool at a fixed interval. Only one replica at a time counts, because
// counting requires calls to Gardener. As a prometheus.Collector, it exposes the counts of the newest report on all replicas. If
// there is no pool, there is no report.
type AccountsReporter struct {
	// Pool is only needed for reports, not by Collect.
	Pool    accountpool.Pool
	Reports *reports.Store
	Clock   clock.WithTicker
	Log     logrus.FieldLogger
}

// accountCounts is the stored form of a report. It maps account types to their counts.
type accountCounts map[string]typeCounts

// typeCounts counts the accounts of one type.
type typeCounts struct {
	States map[accountpool.State]int `json:"states"`
	// SharedInstances is the number of instances in shared accounts.
	SharedInstances int `json:"sharedInstances"`
}

// Part returns the lifecycle.Part that calls Report every minute.
func (r AccountsReporter) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "account report", Every: accountsCheckEvery, Work: r.Report, Clock: r.Clock, Log: r.Log}.Part()
}

// Report creates the report if it is due and no other replica is creating it.
func (r AccountsReporter) Report(ctx context.Context) error {
	now := r.Clock.Now()

	claimed, err := r.Reports.Claim(ctx, accountsReportID, now, now.Add(accountsReportEvery))
	if err != nil || !claimed {
		return err
	}

	all, err := r.Pool.Overview(ctx)
	if err != nil {
		return err
	}

	counts := accountCounts{}

	for _, status := range all {
		counted, known := counts[status.Type]
		if !known {
			counted.States = map[accountpool.State]int{}
		}

		counted.States[status.State]++

		if status.Shared {
			counted.SharedInstances += len(status.Instances)
		}

		counts[status.Type] = counted
	}

	return r.Reports.Save(ctx, accountsReportID, counts, r.Clock.Now())
}

func accountsMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_pool_accounts",
		"Accounts of the account pool in the newest report, by type (hyperscalerType) and state: internal, releasing, dirty, shared, claimed, labeled, free. "+
			"All replicas report the same value.", []string{"type", "state"}, nil)
}

func sharedInstancesMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_pool_shared_instances",
		"Instances in shared accounts in the newest report, by type. All replicas report the same value.", []string{"type"}, nil)
}

func accountsTimeMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_pool_timestamp_seconds",
		"End of the newest report of the account pool, in seconds since 1970. All replicas report the same value.", nil, nil)
}

// Describe implements prometheus.Collector.
func (AccountsReporter) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- accountsMetric()

	descriptions <- sharedInstancesMetric()

	descriptions <- accountsTimeMetric()
}

// Collect implements prometheus.Collector. Before the first report there are no metrics. Every state of a type has a value, so
// that an alert can detect when the last free account is taken.
func (r AccountsReporter) Collect(metrics chan<- prometheus.Metric) {
	var counts accountCounts

	finished, found := r.Reports.ForScrape(accountsReportID, &counts, r.Log)
	if !found {
		return
	}

	for name, counted := range counts {
		for _, state := range accountpool.States() {
			metrics <- prometheus.MustNewConstMetric(accountsMetric(), prometheus.GaugeValue, float64(counted.States[state]), name, string(state))
		}

		metrics <- prometheus.MustNewConstMetric(sharedInstancesMetric(), prometheus.GaugeValue, float64(counted.SharedInstances), name)
	}

	metrics <- prometheus.MustNewConstMetric(accountsTimeMetric(), prometheus.GaugeValue, float64(finished.Unix()))
}
