package reconcile

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/storage/reports"
)

const (
	// reportID is the ID of the report in package reports.
	reportID = "differences"
	// checkEvery limits how late a report starts after it is due.
	checkEvery = time.Minute
	// reportLimit is the maximum number of differences in a page, and reportPages the maximum number of pages in a report.
	reportLimit = 1000
	reportPages = 10_000
	// reportLines is the maximum number of differences that a report logs. The API lists all of them.
	reportLines = 100
	// pageTimeout limits the comparison for one page.
	pageTimeout = time.Minute
)

// Reporter counts the differences at regular intervals, on one replica at a time. As a prometheus.Collector, it exposes the counts of
// the newest report on all replicas. All fields are required.
type Reporter struct {
	Differences operatorserver.Differences
	Reports     *reports.Store
	// Interval is the time between two reports. 0 means no reports.
	Interval time.Duration
	Clock    clock.WithTicker
	Log      logrus.FieldLogger
}

// counts is the stored form of a report.
type counts struct {
	Kinds map[operatorapi.DifferenceKind]int `json:"kinds"`
	// Incomplete is the number of systems that were not compared.
	Incomplete int `json:"incomplete"`
}

// Part returns the lifecycle.Part that calls Report periodically.
func (r Reporter) Part() lifecycle.Part {
	return lifecycle.Periodic{
		Name: "difference report", Every: min(checkEvery, max(r.Interval, time.Second)), Work: r.Report, Clock: r.Clock, Log: r.Log,
	}.Part()
}

// Report creates the report if it is due and no other replica is creating it. It logs a line for each of the first reportLines
// differences.
func (r Reporter) Report(ctx context.Context) error {
	if r.Interval == 0 {
		return nil
	}

	now := r.Clock.Now()

	claimed, err := r.Reports.Claim(ctx, reportID, now, now.Add(r.Interval))
	if err != nil || !claimed {
		return err
	}

	found, total := counts{Kinds: map[operatorapi.DifferenceKind]int{}}, 0
	request := operatorserver.Comparison{Limit: reportLimit}

	for range reportPages {
		page, err := r.page(ctx, request)
		if err != nil {
			return err
		}

		for _, difference := range page.Differences {
			found.Kinds[difference.Kind]++

			if total++; total <= reportLines {
				r.Log.WithFields(fieldsOf(difference)).Warn(difference.Meaning)
			}
		}

		for _, text := range page.Incomplete {
			found.Incomplete++
			r.Log.Warn("the comparison with the Provisioner, Gardener and Director is incomplete: " + text)
		}

		if request.After = page.Next; request.After == "" {
			break
		}
	}

	return r.Reports.Save(ctx, reportID, found, r.Clock.Now())
}

// page returns one page of the comparison.
func (r Reporter) page(ctx context.Context, request operatorserver.Comparison) (operatorserver.Compared, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()

	return r.Differences.Compare(ctx, request)
}

// kinds returns the kinds of differences in a report. A report does not search for unknown bindings.
func kinds() []operatorapi.DifferenceKind {
	return []operatorapi.DifferenceKind{
		operatorapi.DifferenceKindShootWithoutRuntime, operatorapi.DifferenceKindRuntimeWithoutShoot,
		operatorapi.DifferenceKindRegistrationWithoutRuntime, operatorapi.DifferenceKindRuntimeWithoutRegistration,
		operatorapi.DifferenceKindInstanceWithoutRuntime, operatorapi.DifferenceKindRuntimeWithoutInstance,
	}
}

func differencesMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_differences",
		"Differences in the newest report, by kind: shoot-without-runtime, runtime-without-shoot, registration-without-runtime, "+
			"runtime-without-registration, instance-without-runtime, runtime-without-instance. All replicas report the same value.",
		[]string{"kind"}, nil)
}

func incompleteMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_differences_not_compared",
		"Systems that the newest report has not compared. All replicas report the same value.", nil, nil)
}

func timeMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_differences_timestamp_seconds",
		"End of the newest report, in seconds since 1970. All replicas report the same value.", nil, nil)
}

// Describe implements prometheus.Collector.
func (r Reporter) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- differencesMetric()

	descriptions <- incompleteMetric()

	descriptions <- timeMetric()
}

// Collect implements prometheus.Collector. Before the first report there are no metrics.
func (r Reporter) Collect(metrics chan<- prometheus.Metric) {
	var found counts

	finished, exists := r.Reports.ForScrape(reportID, &found, r.Log)
	if !exists {
		return
	}

	for _, kind := range kinds() {
		metrics <- prometheus.MustNewConstMetric(differencesMetric(), prometheus.GaugeValue, float64(found.Kinds[kind]), string(kind))
	}

	metrics <- prometheus.MustNewConstMetric(incompleteMetric(), prometheus.GaugeValue, float64(found.Incomplete))

	metrics <- prometheus.MustNewConstMetric(timeMetric(), prometheus.GaugeValue, float64(finished.Unix()))
}

// fieldsOf returns the log fields that identify a difference.
func fieldsOf(difference operatorapi.Difference) logrus.Fields {
	return logrus.Fields{
		logging.Kind: string(difference.Kind), logging.InstanceID: difference.InstanceID, logging.RuntimeID: difference.RuntimeID,
		logging.Shoot: difference.ShootName,
	}
}
