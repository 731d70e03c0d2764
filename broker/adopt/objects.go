package adopt

import (
	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// objectsOf returns the objects that Kyma Environment Broker has created for an instance in other systems, so that this broker
// removes them with the instance. If the instance is suspended, all of them except the evaluations are already gone. KEB's row
// records whether the evaluations were removed.
func (i formerInstance) objectsOf(instance environment.Instance) []environment.OutsideObject {
	newest := i.operations[len(i.operations)-1]

	var objects []environment.OutsideObject

	add := func(exists bool, system, kind, key string) {
		if exists && key != "" {
			objects = append(objects, environment.OutsideObject{
				InstanceID: instance.ID, System: system, Kind: kind, Key: key, State: environment.OutsideCreated,
			})
		}
	}

	add(newest.InternalEvaluation != "0", environment.SystemAvS, environment.KindInternalEvaluation, newest.InternalEvaluation)
	add(newest.ExternalEvaluation != "0", environment.SystemAvS, environment.KindExternalEvaluation, newest.ExternalEvaluation)
	add(newest.EDP && !instance.Suspended, environment.SystemEDP, environment.KindDataTenant, edp.TenantName(instance.SubAccountID))
	add(newest.Reconciler && !instance.Suspended, environment.SystemReconciler, environment.KindCluster, i.RuntimeID)

	return objects
}
