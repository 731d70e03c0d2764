package shoot

import (
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// The extensions that need more than their type. Others may be listed in Options as well.
const (
	ExtensionDNS              = "shoot-dns-service"
	ExtensionCertificates     = "shoot-cert-service"
	ExtensionNetworkingFilter = "shoot-networking-filter"
	ExtensionOIDC             = "shoot-oidc-service"
)

// DefaultExtensions are those that the former Provisioner gave every Shoot.
func DefaultExtensions() []string {
	return []string{ExtensionCertificates, ExtensionDNS, ExtensionNetworkingFilter, ExtensionOIDC}
}

type dnsConfig struct {
	metav1.TypeMeta `json:",inline"`

	DNSProviderReplication enabled `json:"dnsProviderReplication"`
}

type certConfig struct {
	metav1.TypeMeta `json:",inline"`

	ShootIssuers enabled `json:"shootIssuers"`
}

type enabled struct {
	Enabled bool `json:"enabled"`
}

// extensionsOf returns the extensions ordered by type, so that the order of a configuration changes nothing, and that for audit logs
// behind them.
func extensionsOf(config *spec.Cluster, options Options) ([]gardencorev1beta1.Extension, error) {
	var extensions []gardencorev1beta1.Extension

	for _, extensionType := range slices.Compact(slices.Sorted(slices.Values(options.Extensions))) {
		extension := gardencorev1beta1.Extension{Type: extensionType}

		var err error

		switch extensionType {
		case ExtensionDNS:
			extension.ProviderConfig, err = raw(dnsConfig{
				TypeMeta: typeMeta("service.dns", "DNSConfig"), DNSProviderReplication: enabled{Enabled: true},
			})
		case ExtensionCertificates:
			extension.ProviderConfig, err = raw(certConfig{
				TypeMeta: typeMeta("service.cert", "CertConfig"), ShootIssuers: enabled{Enabled: true},
			})
		case ExtensionNetworkingFilter:
			extension.Disabled = new(valueOr(config.ShootNetworkingFilterDisabled, true))
		case ExtensionOIDC:
			extension.Disabled = new(false)
		}

		if err != nil {
			return nil, err
		}

		extensions = append(extensions, extension)
	}

	if log := options.AuditLogs.of(config); log != nil {
		extension, err := log.extension()
		if err != nil {
			return nil, err
		}

		extensions = append(extensions, extension)
	}

	return extensions, nil
}
