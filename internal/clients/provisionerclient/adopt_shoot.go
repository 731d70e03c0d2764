package provisionerclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
)

// ShootAdoption is the order to take over a Shoot for an instance.
type ShootAdoption struct {
	// Instance needs an ID, a name and a Shoot name. The administrators come from its Request.Cluster.
	Instance environment.Instance
	// CredentialsBinding is the name of the binding that replaces a SecretBinding of the Shoot. If it is empty, the binding with the
	// same name is used.
	CredentialsBinding string
	// Generation is the generation of the Shoot that an earlier dry run returned. If the Shoot has a different generation now,
	// it is not adopted. If Generation is 0, any generation is accepted.
	Generation int
	DryRun     bool
}

// AdoptedShoot is a Shoot that was adopted or, after a dry run, would be.
type AdoptedShoot struct {
	Adopted

	RuntimeID  string
	Generation int
	// Earlier reports whether the Shoot was already the runtime of the instance before the call.
	Earlier bool
	// Changes and NotInOrder are described in the Provisioner's schema.
	Changes    []objectdiff.Change
	NotInOrder []string
}

// AdoptShoot adopts a Shoot as the runtime of the instance. It is idempotent. If the Shoot cannot be adopted, the error is of
// kind failure.Conflict, or failure.NotFound if there is no such Shoot, and contains the reason.
func (c *Client) AdoptShoot(ctx context.Context, caller Caller, order ShootAdoption) (AdoptedShoot, error) {
	input := &wire.AdoptShootInput{
		ShootName: order.Instance.ShootName, InstanceID: &order.Instance.ID, Name: unlessZero(order.Instance.Name),
		CredentialsBinding: unlessZero(order.CredentialsBinding), Administrators: order.Instance.Request.Cluster.Administrators,
		Generation: unlessZero(order.Generation), DryRun: &order.DryRun,
	}

	if !order.DryRun {
		input.ClientData = c.clientData(order.Instance)
	}

	call := c.call("take over the Shoot", caller)

	answer, err := wire.AdoptShoot(ctx, call, input)
	if errors.Is(err, ErrNotUnderstood) {
		return AdoptedShoot{}, failure.New(failure.Permanent, "the Provisioner cannot take over Shoots: it is a Kyma Provisioner or an earlier release").
			WithReason(failure.ReasonHTTPStatus, failure.ComponentProvisioner)
	}

	kinds := map[failure.Kind]failure.Kind{failure.Permanent: failure.Conflict, failure.NotFound: failure.NotFound}
	if kind, rejected := kinds[failure.KindOf(err)]; err != nil && rejected {
		// There is no operation whose timeline has the details, so the error contains them.
		problem := failure.Of(err)

		return AdoptedShoot{}, failure.New(kind, "%s", cmp.Or(problem.Detail, problem.Text)).WithReason(problem.Reason, problem.Component)
	}

	if err != nil {
		return AdoptedShoot{}, fmt.Errorf("taking over the Shoot %q: %w", order.Instance.ShootName, err)
	}

	found := answer.Result
	if found == nil || found.ClusterConfig == nil || found.RuntimeID == "" {
		return AdoptedShoot{}, call.missing("the runtime")
	}

	adopted := AdoptedShoot{
		Adopted: adoptedOf(found.ClusterConfig), RuntimeID: found.RuntimeID, Generation: found.Generation, Earlier: found.Earlier,
		NotInOrder: found.NotInOrder,
	}

	for _, each := range found.Changes {
		if each != nil {
			adopted.Changes = append(adopted.Changes, objectdiff.Change{Path: each.Path, Present: each.Present, Wanted: each.Wanted})
		}
	}

	return adopted, nil
}
