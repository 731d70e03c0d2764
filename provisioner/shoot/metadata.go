package shoot

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations by which a Shoot tells whose it is. The legacy ones are those that former tools look for.
const (
	LabelAccount    = "account"
	LabelSubAccount = "subaccount"
	// LabelRuntimeID finds a Shoot, and what stands beside it in the project's namespace.
	LabelRuntimeID = "provisioner.environment-broker.io/runtime-id"

	AnnotationRuntimeID         = "kcp.provisioner.kyma-project.io/runtime-id"
	AnnotationOperationID       = "kcp.provisioner.kyma-project.io/operation-id"
	AnnotationLicenceType       = "kcp.provisioner.kyma-project.io/licence-type"
	AnnotationLegacyRuntimeID   = "compass.provisioner.kyma-project.io/runtime-id"
	AnnotationLegacyOperationID = "compass.provisioner.kyma-project.io/operation-id"
	AnnotationAuditLogTenant    = "custom.shoot.sapcloud.io/subaccountId"
)

func metadata(runtime Runtime, options Options) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name:      runtime.Config.Name,
		Namespace: options.Namespace,
		Labels: map[string]string{
			LabelAccount:    runtime.Tenant,
			LabelSubAccount: runtime.SubAccount,
			LabelRuntimeID:  runtime.ID,
		},
		Annotations: map[string]string{
			AnnotationRuntimeID:         runtime.ID,
			AnnotationOperationID:       runtime.OperationID,
			AnnotationLegacyRuntimeID:   runtime.ID,
			AnnotationLegacyOperationID: runtime.OperationID,
		},
	}

	if licence := given(runtime.Config.LicenceType); licence != nil {
		meta.Annotations[AnnotationLicenceType] = *licence
	}

	if options.AuditLogTenant != "" {
		meta.Annotations[AnnotationAuditLogTenant] = options.AuditLogTenant
	}

	return meta
}
