package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// avsInterval is the pause between two attempts to remove an evaluation.
const avsInterval = 10 * time.Second

// AvS removes evaluations. Remove is idempotent.
type AvS interface {
	Remove(ctx context.Context, id, planName string, internal bool) error
}

// removeEvaluations removes the instance's evaluations from AvS. It cannot remove an evaluation whose ID never reached the
// broker, so it records that evaluation as left over.
type removeEvaluations struct {
	// client is nil if AvS is turned off. Evaluations then stay and are recorded as left over.
	client  AvS
	objects Objects
}

// Name implements process.Step.
func (removeEvaluations) Name() string { return "De-provision_AVS_Evaluations" }

// Run implements process.Step.
func (s removeEvaluations) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	objects, err := s.objects.ObjectsIn(ctx, operation.InstanceID, environment.SystemAvS)
	if err != nil {
		return operation, 0, err
	}

	after, wait := operation, time.Duration(0)

	for _, object := range objects {
		var pause time.Duration

		// A successful removal must not discard the note that an earlier removal in this step has left.
		if after, pause, err = s.remove(ctx, after, object, log); err != nil {
			return operation, 0, err
		}

		wait = max(wait, pause)
	}

	return after, wait, nil
}

// remove removes an object from AvS, and then its record.
func (s removeEvaluations) remove(ctx context.Context, operation Operation, object environment.OutsideObject, log logrus.FieldLogger,
) (Operation, time.Duration, error) {
	evaluation := object.Kind == environment.KindInternalEvaluation || object.Kind == environment.KindExternalEvaluation

	switch {
	case object.Kind == environment.KindMaintenance(environment.KindInternalEvaluation),
		object.Kind == environment.KindMaintenance(environment.KindExternalEvaluation): // AvS removes it together with the evaluation
		return operation, 0, s.objects.RemoveObject(ctx, operation.Record, object)
	case !evaluation || object.Key == "":
		return cleanup{objects: s.objects, object: object, interval: avsInterval, off: true, cause: failure.New(failure.Permanent,
			"AvS may have an evaluation whose ID never reached the broker: look for instance %s in AvS", operation.Data.Instance.ID).
			WithReason(failure.ReasonInternal, failure.ComponentAvS)}.retry(ctx, operation, log)
	}

	if object.State != environment.OutsideRemoving {
		object.State = environment.OutsideRemoving
		if err := s.objects.SetObject(ctx, operation.Record, object); err != nil {
			return operation, 0, err
		}
	}

	if err := s.call(ctx, object, operation.Data.Instance.PlanName); err != nil {
		return cleanup{objects: s.objects, object: object, cause: err, interval: avsInterval, off: s.client == nil}.retry(ctx, operation, log)
	}

	return operation, 0, s.objects.RemoveObject(ctx, operation.Record, object)
}

// call removes the evaluation from AvS. It returns an error if AvS is turned off.
func (s removeEvaluations) call(ctx context.Context, object environment.OutsideObject, planName string) error {
	if s.client == nil {
		return failure.New(failure.Permanent, "AvS is turned off: an operator must set APP_AVS_API_ENDPOINT").
			WithReason(failure.ReasonInternal, failure.ComponentAvS)
	}

	return s.client.Remove(ctx, object.Key, planName, object.Kind == environment.KindInternalEvaluation) //nolint:wrapcheck // names AvS
}
