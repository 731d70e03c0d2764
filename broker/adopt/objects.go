package adopt

import (
	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// objectsOf returns the objects that Kyma Environment Broker has created for an instance in other systems, so that this broker
// removes them with the instance. If the instance is suspended, all of them except the evaluations are already gone. KEB's row
// records whether the evaluations were removed.
func (i formerInstance) objectsOf(instance environment.Instance) []environment.OutsideObject {
	newest := i.operations[len(i.operations)-1]

	var objects []environment.OutsideObject

	add := func(exists bool, object environment.OutsideObject) {
		if exists && object.Key != "" {
			objects = append(objects, object)
		}
	}

	add(newest.InternalEvaluation != "0", evaluation(instance, environment.KindInternalEvaluation, newest.InternalEvaluation))
	add(newest.ExternalEvaluation != "0", evaluation(instance, environment.KindExternalEvaluation, newest.ExternalEvaluation))
	add(newest.EDP && !instance.Suspended, edp.Record(instance.ID, instance.SubAccountID, environment.OutsideCreated))
	add(newest.Reconciler && !instance.Suspended, reconciler.Record(instance.ID, i.RuntimeID, environment.OutsideCreated))

	return objects
}

// evaluation returns the record of an evaluation in AvS.
func evaluation(instance environment.Instance, kind, id string) environment.OutsideObject {
	return environment.OutsideObject{
		InstanceID: instance.ID, System: environment.SystemAvS, Kind: kind, Key: id, State: environment.OutsideCreated,
	}
}
