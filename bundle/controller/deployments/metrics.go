package deployments

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the result label.
const (
	resultInstalled = "installed"
	resultFailed    = "failed"
)

// register adds the metrics of the controller to a registry. No label names a cluster or a BundleDeployment.
func (r *Reconciler) register(registry prometheus.Registerer) error {
	labels := prometheus.Labels{"class": r.Class}

	r.pivots = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_bundle_pivots_total", ConstLabels: labels,
		Help: "Attempts to install a Bundle or a new config, by result: installed or failed.",
	}, []string{"result"})
	for _, result := range []string{resultInstalled, resultFailed} {
		r.pivots.WithLabelValues(result)
	}

	if registry == nil {
		return nil
	}

	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "environment_broker_bundle_" + name, Help: help, ConstLabels: labels},
			func() float64 { return float64(value()) })
	}

	var errs []error

	for _, collector := range []prometheus.Collector{
		r.pivots,
		gauge("targets", "Target clusters of BundleDeployments, not counting the cluster that contains the BundleDeployments.", func() int {
			all, _ := r.clusters.count()

			return all
		}),
		gauge("targets_unavailable", "Target clusters that do not respond or that reject a kubeconfig, so calls to them are held back.", func() int {
			_, unavailable := r.clusters.count()

			return unavailable
		}),
		gauge("watches", "Watches on installed objects: one per cluster and kind.", func() int {
			watches, _ := r.watches.Count()

			return watches
		}),
		gauge("watched_objects", "Installed objects that are watched.", func() int {
			_, objects := r.watches.Count()

			return objects
		}),
	} {
		errs = append(errs, registry.Register(collector))
	}

	return errors.Join(errs...)
}
