package service

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/environment-broker/environment-broker/process/deprovisioning"
)

// countLeftOver registers the counter of runtimes that a failed or skipped removal may have left in Gardener, and
// returns a function that increments it. The counter can exceed the number of such runtimes, because each failed
// attempt to delete an instance increments it.
func countLeftOver(metrics prometheus.Registerer) func(deprovisioning.LeftOver) {
	leftOver := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_runtimes_left_over_total",
		Help: "Deletions that may have left a cluster behind, by reason: unknown (the deletion failed, because the Provisioner does not know the runtime), " +
			"skipped (an operator skipped the removal).",
	}, []string{"reason"})
	metrics.MustRegister(leftOver)

	// Create both series at the start. Otherwise, Prometheus would not see the first increment as an increase.
	for _, reason := range []deprovisioning.LeftOver{deprovisioning.LeftOverUnknown, deprovisioning.LeftOverSkipped} {
		leftOver.WithLabelValues(string(reason))
	}

	return func(reason deprovisioning.LeftOver) { leftOver.WithLabelValues(string(reason)).Inc() }
}
