package shoot

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const (
	// ExtensionAuditLog sends the audit log of a cluster away. It is had by Options.AuditLogs, not by Options.Extensions.
	ExtensionAuditLog = "shoot-auditlog-service"
	// auditLogResource is the name by which the extension finds the Secret.
	auditLogResource = "auditlog-credentials"
)

// AuditLog is where the audit log of a cluster goes.
type AuditLog struct {
	TenantID   string `json:"tenantID"`
	ServiceURL string `json:"serviceURL"`
	// SecretName is the name of the Secret with the credentials, in the project's namespace.
	SecretName string `json:"secretName"`
}

// AuditLogs are where audit logs go, by the provider of the Seed and by the region of the Shoot.
type AuditLogs map[string]map[string]AuditLog

type auditLogConfig struct {
	metav1.TypeMeta `json:",inline"`

	Type                string `json:"type"`
	TenantID            string `json:"tenantID"`
	ServiceURL          string `json:"serviceURL"`
	SecretReferenceName string `json:"secretReferenceName"`
}

// of returns where the audit log of a cluster goes, or nil. The Seed is taken to be of the Shoot's own provider: Gardener chooses no
// other one, unless a cloud profile says so.
func (a AuditLogs) of(config *spec.Cluster) *AuditLog {
	log, ok := a[config.Provider][config.Region]
	if !ok {
		return nil
	}

	return &log
}

func (l *AuditLog) extension() (gardencorev1beta1.Extension, error) {
	config, err := raw(auditLogConfig{
		TypeMeta: typeMeta("service.auditlog", "AuditlogConfig"),
		Type:     "standard", TenantID: l.TenantID, ServiceURL: l.ServiceURL, SecretReferenceName: auditLogResource,
	})

	return gardencorev1beta1.Extension{Type: ExtensionAuditLog, ProviderConfig: config}, err
}

// resources are the objects that are handed to extensions.
func (l *AuditLog) resources() []gardencorev1beta1.NamedResourceReference {
	if l == nil {
		return nil
	}

	return []gardencorev1beta1.NamedResourceReference{{
		Name:        auditLogResource,
		ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: l.SecretName},
	}}
}
