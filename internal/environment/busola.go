package environment

import "github.com/environment-broker/environment-broker/internal/secret"

// busolaMigrator is the component of Kyma that redirects users of the former console to Busola.
const busolaMigrator = "busola-migrator"

// OverrideBusola sets the values of the component busola-migrator in the installation of Kyma. Without an installation, or without this
// component, it changes nothing. The keys are those of the component's chart.
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
