package adopt

import (
	"context"
	"encoding/json"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
)

// FirstChange predicts which fields of the runtime the first update of an adopted instance would change, even if the update sets
// no parameters. order describes the runtime as the Provisioner reports it, in the form of provisionerclient.UpgradeOf. If the
// update would be rejected, note says why.
func FirstChange(plan *catalog.Plan, instance environment.Instance, order any) (changes []objectdiff.Change, note string, _ error) {
	updated, err := plan.Update(instance, json.RawMessage(`{}`))
	if failure.Is(err, failure.Invalid) {
		return nil, "an update must correct its parameters: " + failure.Of(err).ForOperators(), nil
	}

	if err != nil {
		return nil, "", err
	}

	target := instance
	target.Request.Cluster = updated.Cluster
	changes, err = objectdiff.Changes(order, provisionerclient.UpgradeOf(instance, target), func(string) bool { return false })

	return changes, "", err
}

// preview returns the result of FirstChange for an instance whose runtime the Provisioner manages, and nothing for other instances.
func (a *Adopter) preview(ctx context.Context, instance environment.Instance) ([]objectdiff.Change, string, error) {
	if instance.RuntimeID == "" {
		return nil, "", nil
	}

	plan, err := a.Catalog.Plan(instance.ServiceID, instance.PlanID)
	if err != nil {
		return nil, "", err
	}

	order, err := a.Runtimes.Order(ctx, instance.RuntimeID)
	if err != nil {
		return nil, "", err
	}

	present, _ := order.(map[string]any)

	return FirstChange(plan, instance, map[string]any{"gardenerConfig": present["cluster"], "administrators": present["administrators"]})
}
