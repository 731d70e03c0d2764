package shoot

import (
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// The extension types that extensionsOf configures. Options.Extensions may contain other types.
const (
	ExtensionDNS              = "shoot-dns-service"
	ExtensionCertificates     = "shoot-cert-service"
	ExtensionNetworkingFilter = "shoot-networking-filter"
	ExtensionOIDC             = "shoot-oidc-service"
)

// DefaultExtensions returns the types of the extensions that Kyma Provisioner adds to every Shoot.
func DefaultExtensions() []string {
	return []string{ExtensionCertificates, ExtensionDNS, ExtensionNetworkingFilter, ExtensionOIDC}
}

// extensionsOf returns the extensions sorted by type and without duplicates. The extension for audit logs is last. Because the
// sequence is fixed, a Shoot does not change when an operator reorders the setting.
func extensionsOf(config *spec.Cluster, options Options) ([]gardencorev1beta1.Extension, error) {
	var extensions []gardencorev1beta1.Extension

	for _, extensionType := range slices.Compact(slices.Sorted(slices.Values(options.Extensions))) {
		extension := gardencorev1beta1.Extension{Type: extensionType}

		var err error

		switch extensionType {
		case ExtensionDNS:
			extension.ProviderConfig, err = raw(extensionConfig("service.dns", "DNSConfig", fields{
				"dnsProviderReplication": fields{"enabled": true},
			}))
		case ExtensionCertificates:
			extension.ProviderConfig, err = raw(extensionConfig("service.cert", "CertConfig", fields{
				"shootIssuers": fields{"enabled": true},
			}))
		case ExtensionNetworkingFilter:
			extension.Disabled = new(ptr.Deref(config.ShootNetworkingFilterDisabled, true))
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
	// ExtensionAuditLog is the type of the extension that forwards the audit log of a cluster. Options.AuditLogs enables it.
	ExtensionAuditLog = "shoot-auditlog-service"
	// auditLogResource is the name of the resource reference in the Shoot by which the extension finds its Secret.
	auditLogResource = "auditlog-credentials"
)

// AuditLog is the target of a cluster's audit log. The JSON form is part of the Provisioner's configuration.
type AuditLog struct {
	TenantID   string `json:"tenantID"`
	ServiceURL string `json:"serviceURL"`
	// SecretName is the name of the Secret with the credentials for ServiceURL, in the namespace of the project.
	SecretName string `json:"secretName"`
}

// AuditLogs maps a Seed's provider and a Shoot's region to the audit log target.
type AuditLogs map[string]map[string]AuditLog

// of returns the audit log target for a cluster, or nil if there is none. Gardener chooses the Seed later, so this method assumes
// that the Seed has the same provider as the Shoot. The assumption is wrong only if a cloud profile allows Seeds of other
// providers.
func (a AuditLogs) of(config *spec.Cluster) *AuditLog {
	log, ok := a[config.Provider][config.Region]
	if !ok {
		return nil
	}

	return &log
}

// extension returns the extension that forwards the audit log. Its configuration names the resource reference by which the
// extension finds its Secret; see resources.
func (l *AuditLog) extension() (gardencorev1beta1.Extension, error) {
	config, err := raw(extensionConfig("service.auditlog", "AuditlogConfig", fields{
		"type": "standard", "tenantID": l.TenantID, "serviceURL": l.ServiceURL, "secretReferenceName": auditLogResource,
	}))

	return gardencorev1beta1.Extension{Type: ExtensionAuditLog, ProviderConfig: config}, err
}

// resources returns the Shoot's references to objects that extensions may read, or nil if there is no target.
func (l *AuditLog) resources() []gardencorev1beta1.NamedResourceReference {
	if l == nil {
		return nil
	}

	return []gardencorev1beta1.NamedResourceReference{{
		Name:        auditLogResource,
		ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: l.SecretName},
	}}
}
