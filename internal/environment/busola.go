package environment

import "github.com/environment-broker/environment-broker/internal/secret"

// busolaMigrator is the Kyma component that redirects users of the old console to Busola.
const busolaMigrator = "busola-migrator"

// OverrideBusola sets the values of the busola-migrator component in the Kyma installation. It does nothing if there is no
// installation or if the installation lacks the component. The component's Helm chart defines the keys.
func (i Instance) OverrideBusola() {
	kyma := i.Request.Cluster.Kyma
	if kyma == nil || kyma.Installation == nil {
		return
	}

	kyma.Installation.Set(busolaMigrator,
		KymaEntry{Key: "deployment.env.kubeconfigID", Value: secret.String(i.ID)},
		KymaEntry{Key: "global.istio.gateway.name", Value: "kyma-gateway"},
	)
}
