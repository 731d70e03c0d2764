package broker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// UpgradeTimes stores the times that owners of instances choose for upgrades.
type UpgradeTimes interface {
	// Choose stores the time for the upgrade that waits for the instance. It locks orchestrations, so the transaction must not have
	// locked an instance before. If the time cannot be chosen, the error is of kind failure.Invalid or failure.Conflict, and the
	// transaction can still be used.
	Choose(ctx context.Context, tx storage.Tx, instanceID string, at, now time.Time, by string) error
}

// chooseUpgradeTime stores the time of the upgrade, if the update contains one. It must be called before the instance is locked.
// refusal says why the time cannot be chosen. The request fails with it only if the time differs from the stored one; see
// refusesTime. If the update is rejected for another reason, the transaction is rolled back and the time is not stored.
func (a *api) chooseUpgradeTime(ctx context.Context, tx storage.Tx, request updateRequest) (refusal, err error) {
	// If the parameters are invalid, the resolution contains no time.
	if request.resolution == nil || request.resolution.updated.UpgradeTime.IsZero() {
		return nil, nil
	}

	if a.UpgradeTimes == nil {
		return failure.New(failure.Conflict, "No upgrade is waiting for the instance."), nil
	}

	err = a.UpgradeTimes.Choose(ctx, tx, request.instanceID, request.resolution.updated.UpgradeTime, a.Clock.Now(), request.caller.Name)
	if failure.Is(err, failure.Invalid) || failure.Is(err, failure.Conflict) {
		return err, nil
	}

	return nil, err
}

// refusesTime returns the error response for a time that cannot be chosen. Platforms may send all parameters again in each
// update, so repeating the instance's stored time is not an error.
func refusesTime(refusal error, before, updated environment.Instance) error {
	if refusal == nil || upgradeTimeOf(before) == upgradeTimeOf(updated) {
		return nil
	}

	text := failure.Of(refusal).Text
	if failure.Is(refusal, failure.Invalid) {
		return invalid("upgradeTime: " + text)
	}

	return unprocessable("", text)
}

// upgradeTimeOf returns the upgradeTime parameter of an instance, or an empty string.
func upgradeTimeOf(instance environment.Instance) string {
	var sent struct {
		UpgradeTime string `json:"upgradeTime"`
	}

	_ = json.Unmarshal(instance.Request.Parameters, &sent) // without parameters, there is no time

	return sent.UpgradeTime
}
