package broker

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// UpgradeTimes stores the start times that instance owners choose for upgrades.
type UpgradeTimes interface {
	// Choose sets the start time of the instance's pending upgrade to at. It locks orchestrations, so the transaction must not
	// hold a lock on an instance yet. If the upgrade cannot start at this time, or none is pending, the error is of kind
	// failure.Invalid or failure.Conflict, and the transaction can still be used.
	Choose(ctx context.Context, tx storage.Tx, instanceID string, at, now time.Time, by string) error
}

// chooseUpgradeTime stores the upgradeTime parameter of an update, if there is one, and records it in the audit log: the instance does not
// change if it has the same parameter from an earlier upgrade. It must be called before the instance is locked. chosen reports whether a
// time was stored. If the time cannot be chosen, refusal says why. refusesTime decides whether the request then fails. If the update is
// rejected for another reason, the caller rolls the transaction back, so the time is not stored.
func (a *api) chooseUpgradeTime(ctx context.Context, tx storage.Tx, request updateRequest) (chosen bool, refusal, err error) {
	// If the parameters are invalid, request.resolution contains no time.
	if request.resolution == nil || request.resolution.updated.UpgradeTime.IsZero() {
		return false, nil, nil
	}

	if a.UpgradeTimes == nil {
		return false, failure.New(failure.Conflict, "The instance has no pending upgrade."), nil
	}

	at := request.resolution.updated.UpgradeTime

	err = a.UpgradeTimes.Choose(ctx, tx, request.instanceID, at, a.Clock.Now(), request.caller.Name)
	if failure.Is(err, failure.Invalid) || failure.Is(err, failure.Conflict) {
		return false, err, nil
	}

	if err != nil {
		return false, nil, err
	}

	return true, nil, a.Recorder.Record(ctx, tx, auditlog.Entry{
		Action: auditlog.ActionUpdate, InstanceID: request.instanceID, Status: http.StatusOK, After: auditlog.Fields{"upgradeTime": at},
	})
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

// upgradeTimeOf returns the stored upgradeTime parameter of an instance, or an empty string if it has none.
func upgradeTimeOf(instance environment.Instance) string {
	var sent struct {
		UpgradeTime string `json:"upgradeTime"`
	}

	_ = json.Unmarshal(instance.Request.Parameters, &sent) // without parameters, there is no time

	return sent.UpgradeTime
}
