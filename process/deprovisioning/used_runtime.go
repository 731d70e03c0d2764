package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

// undecidedInterval is the pause before a cleanup looks again at an instance that may be about to get the runtime.
const undecidedInterval = time.Minute

// unlessUsed is a step of a cleanup. It does nothing if an instance uses the runtime of the leftover: the runtime and its objects in
// other systems then belong to this instance. An instance that is resumed gets its former runtime if the Provisioner still has it.
type unlessUsed struct {
	Step

	instances Instances
	// limit is how long the step waits for an instance that may be about to get the runtime.
	limit time.Duration
}

// Run implements process.Step.
func (s unlessUsed) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	user, err := s.instances.RuntimeUser(ctx, operation.Data.Instance)

	switch {
	case failure.Is(err, failure.Waiting):
		return process.Await(operation, failure.Of(err).Text, undecidedInterval, s.limit)
	case err != nil:
		return operation, 0, err
	case user != "":
		return used(operation, user, log), 0, nil
	default:
		return s.Step.Run(ctx, operation, log)
	}
}

// used notes in the timeline that the step has removed nothing, because the instance uses the runtime.
func used(operation Operation, user string, log logrus.FieldLogger) Operation {
	runtimeID := operation.Data.Instance.RuntimeID
	log.WithField(logging.RuntimeID, runtimeID).Warnf("instance %s uses the runtime of the leftover; nothing is removed", user)

	return process.Noted(operation, "instance "+user+" uses the runtime "+runtimeID+": nothing is removed")
}
