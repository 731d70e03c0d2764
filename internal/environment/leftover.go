package environment

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/process"
)

// Leftover is a deleted instance, or the former runtime of a suspended instance, whose deletion or suspension has incomplete
// steps. It exists until a cleanup has completed the steps, or until an operator confirms that nothing is left. A new instance
// with the same ID does not affect it.
type Leftover struct {
	// ID and Kind are the ID and the kind of the operation with incomplete steps: a deletion or a suspension.
	ID   string
	Kind string
	// Instance is the instance at the time of the deletion or suspension. Its Request is zero.
	Instance Instance
	// Steps are the names of the steps that were not completed.
	Steps []string
	// DataID is the ID of the operation whose data the next cleanup starts from: the newest successful cleanup, or the original
	// operation if no cleanup has succeeded. NewestID is the ID of the newest cleanup, successful or not, or of the original operation if
	// there was none.
	DataID, NewestID string
	// DeletedAt is when the deletion or suspension ended. RetryAt is when the next cleanup starts.
	DeletedAt, RetryAt time.Time
}

// CleanupInterval is the time between two cleanups of a leftover.
const CleanupInterval = 24 * time.Hour

// NewLeftover returns the leftover of an operation that ended at the given time without completing the given steps.
func NewLeftover(operation process.Record, instance Instance, steps []string, at time.Time) Leftover {
	instance.Request = Request{}

	return Leftover{
		ID: operation.ID, Kind: operation.Kind, Instance: instance, Steps: slices.Compact(slices.Sorted(slices.Values(steps))),
		DataID: operation.ID, NewestID: operation.ID, DeletedAt: at, RetryAt: at.Add(CleanupInterval),
	}
}

// Key returns the value that cleanups of the leftover, and its objects in other systems, have in their InstanceID field.
func (l Leftover) Key() string { return LeftoverKey(l.Instance.ID, l.ID) }

// LeftoverPath separates the two IDs in the key of a leftover. The broker rejects new instance IDs that contain LeftoverPath.
const LeftoverPath = "/leftovers/"

// LeftoverKey returns the key of a leftover. Operations with this key are independent of the operations on a new instance with
// the same instance ID.
func LeftoverKey(instanceID, leftoverID string) string {
	return url.PathEscape(instanceID) + LeftoverPath + leftoverID
}

// LeftoverOf returns the two IDs in a key that LeftoverKey returned. It returns false for instance IDs and binding keys.
func LeftoverOf(key string) (instanceID, leftoverID string, ok bool) {
	escaped, leftoverID, found := strings.Cut(key, LeftoverPath)
	if !found || leftoverID == "" {
		return "", "", false
	}

	instanceID, err := url.PathUnescape(escaped)

	return instanceID, leftoverID, err == nil
}

// NewCleanup returns a new operation that repeats the steps of the leftover. payload is the encoded data of the operation with
// the ID leftover.DataID. finished lists the stages to skip. The caller must add the user who requested the cleanup.
func NewCleanup(leftover Leftover, payload json.RawMessage, finished []string, at time.Time) (process.New, error) {
	var data Data
	if err := data.UnmarshalJSON(payload); err != nil {
		return process.New{}, err
	}

	// Clear the values that belong to the earlier operation.
	data.ProvisionerOperationID, data.UnknownSince = "", time.Time{}

	return newOperation(process.New{
		ID: uuid.NewString(), Kind: KindCleanup, InstanceID: leftover.Key(), Tenant: leftover.Instance.GlobalAccountID,
		PredecessorID: leftover.NewestID, FinishedStages: finished, At: at,
	}, data)
}
