package shoot

import (
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// The extensions that need a configuration. Options may list others.
const (
	ExtensionDNS              = "shoot-dns-service"
	ExtensionCertificates     = "shoot-cert-service"
	ExtensionNetworkingFilter = "shoot-networking-filter"
	ExtensionOIDC             = "shoot-oidc-service"
)

// DefaultExtensions returns the extensions that Kyma Provisioner gave every Shoot.
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

// extensionsOf returns the extensions sorted by type, so that the order in the configuration does not matter, and the one for
// audit logs after them.
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

const (
	// ExtensionAuditLog forwards the audit log of a cluster. Options.AuditLogs enables it, not Options.Extensions.
	ExtensionAuditLog = "shoot-auditlog-service"
	// auditLogResource is the reference by which the extension finds the Secret.
	auditLogResource = "auditlog-credentials"
)

// AuditLog is the target of the audit log of a cluster.
type AuditLog struct {
	TenantID   string `json:"tenantID"`
	ServiceURL string `json:"serviceURL"`
	// SecretName is the name of the Secret with the credentials, in the project's namespace.
	SecretName string `json:"secretName"`
}

// AuditLogs are targets by the provider of the Seed and the region of the Shoot.
type AuditLogs map[string]map[string]AuditLog

type auditLogConfig struct {
	metav1.TypeMeta `json:",inline"`

	Type                string `json:"type"`
	TenantID            string `json:"tenantID"`
	ServiceURL          string `json:"serviceURL"`
	SecretReferenceName string `json:"secretReferenceName"`
}

// of returns the target for a cluster, or nil. It assumes that the Seed has the provider of the Shoot, which is true unless a
// cloud profile allows others.
func (a AuditLogs) of(config *spec.Cluster) *AuditLog {
	log, ok := a[config.Provider][config.Region]
	if !ok {
		return nil
	}

	return &log
}

// extension returns the extension that forwards the audit log. It finds the Secret by the reference that resources returns.
func (l *AuditLog) extension() (gardencorev1beta1.Extension, error) {
	config, err := raw(auditLogConfig{
		TypeMeta: typeMeta("service.auditlog", "AuditlogConfig"),
		Type:     "standard", TenantID: l.TenantID, ServiceURL: l.ServiceURL, SecretReferenceName: auditLogResource,
	})

	return gardencorev1beta1.Extension{Type: ExtensionAuditLog, ProviderConfig: config}, err
}

// resources returns the objects that extensions may read.
func (l *AuditLog) resources() []gardencorev1beta1.NamedResourceReference {
	if l == nil {
		return nil
	}

	return []gardencorev1beta1.NamedResourceReference{{
		Name:        auditLogResource,
		ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: l.SecretName},
	}}
}
