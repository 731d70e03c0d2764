package tlsfiles

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/environment-broker/environment-broker/internal/reload"
)

// Watcher follows the files, and tells when certificates expire.
type Watcher struct {
	files   *reload.Watcher
	expires *prometheus.GaugeVec
}

// NewWatcher returns a watcher whose files the other one follows, and registers its metric.
func NewWatcher(files *reload.Watcher, metrics prometheus.Registerer) *Watcher {
	expires := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "environment_broker_certificate_expiry_timestamp_seconds",
		Help: "When the certificate that is used expires, in seconds since 1970.",
	}, []string{"use"})
	metrics.MustRegister(expires)

	return &Watcher{files: files, expires: expires}
}

func watch(watcher *Watcher, value *reload.Value[identity], use string) {
	reload.Watch(watcher.files, value, func(taken identity) {
		watcher.expires.WithLabelValues(use).Set(float64(taken.certificate.Leaf.NotAfter.Unix()))
	})
}
