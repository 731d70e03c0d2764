package provisioning

import (
	"context"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/process"
)

// After an error, the step tries to create the evaluation in AvS every avsInterval for at most internalWindow or externalWindow.
const (
	avsInterval    = 30 * time.Second
	internalWindow = 10 * time.Minute
	externalWindow = 20 * time.Minute
	// maxUnanswered is the number of requests without a response after which the step sends a last one. Each unanswered request
	// may have created an evaluation.
	maxUnanswered = 2
)

// AvS creates evaluations. Each call of CreateInternal or CreateExternal creates another evaluation; the other calls are
// idempotent.
type AvS interface {
	CreateInternal(ctx context.Context, cluster avs.Cluster) (id string, err error)
	CreateExternal(ctx context.Context, cluster avs.Cluster) (id string, err error)
	TagsOf(shootName, seedName, region string) []avs.Tag
	Tag(ctx context.Context, id string, tags []avs.Tag) error
	Remove(ctx context.Context, id, planName string, internal bool) error
}

// Monitoring configures the steps that call AvS.
type Monitoring struct {
	// AvS is nil if the availability service is turned off.
	AvS                      AvS
	Internal, External, Tags bool
	// ShootDomain is the parent domain of the clusters' domains.
	ShootDomain string
}

// createEvaluation creates an evaluation for the instance. AvS does not recognize repeated requests, so the step records the
// evaluation without an ID before the request. If the record still has no ID when the step runs again, the response was lost. The
// step then records that the evaluation may exist twice, and requests it again.
type createEvaluation struct {
	monitoring Monitoring
	instances  Instances
	objects    Objects
	// external selects the external evaluation instead of the internal one. If an external evaluation cannot be created, the
	// operation continues, because the runtime is ready.
	external bool
}

// Name implements process.Step.
func (s createEvaluation) Name() string {
	if s.external {
		return "AVS_Create_External_Eval_Step"
	}

	return "AVS_Create_Internal_Eval_Step"
}

// kind returns the kind under which the evaluation is recorded.
func (s createEvaluation) kind() string {
	if s.external {
		return environment.KindExternalEvaluation
	}

	return environment.KindInternalEvaluation
}

// Run implements process.Step.
func (s createEvaluation) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	object, err := s.objects.FindObject(ctx, operation.InstanceID, environment.SystemAvS, s.kind())
	if err != nil || object.State == environment.OutsideCreated {
		return operation, 0, err
	}

	cluster, err := s.cluster(ctx, operation)
	if err != nil || s.external && cluster.Domain == "" { // a tenant need not state the domain of its own cluster
		return operation, 0, err
	}

	switch {
	case object.Key != "": // an earlier removal was abandoned
		if err := s.monitoring.AvS.Remove(ctx, object.Key, cluster.PlanName, !s.external); err != nil {
			return s.retry(operation, "removing the previous evaluation", err)
		}
	case object.State != "":
		if err := s.recordUnanswered(ctx, operation, log); err != nil {
			return operation, 0, err
		}
	}

	object.Key, object.State = "", environment.OutsideCreating
	if err := s.objects.SetObject(ctx, operation.Record, object); err != nil {
		return operation, 0, err
	}

	id, err := s.create(ctx, cluster)
	if err != nil {
		return s.failed(ctx, operation, object, err)
	}

	operation.Data.Unanswered = 0
	object.Key, object.State = id, environment.OutsideCreated

	return operation, 0, s.objects.SetObject(ctx, operation.Record, object)
}

// recordUnanswered records that AvS may have an evaluation whose ID never reached the broker.
func (s createEvaluation) recordUnanswered(ctx context.Context, operation Operation, log logrus.FieldLogger) error {
	object, err := s.objects.FindObject(ctx, operation.InstanceID, environment.SystemAvS, environment.KindWithoutID(s.kind()))
	if err != nil {
		return err
	}

	requests, _ := strconv.Atoi(object.Key)
	object.Key, object.State = strconv.Itoa(requests+1), environment.OutsideUncertain

	log.WithField("system", object.System).Warn("AvS did not respond to the request for an evaluation, which is now repeated; the evaluation may exist twice")

	return s.objects.SetObject(ctx, operation.Record, object)
}

func (s createEvaluation) create(ctx context.Context, cluster avs.Cluster) (string, error) {
	if s.external {
		return s.monitoring.AvS.CreateExternal(ctx, cluster) //nolint:wrapcheck // names AvS
	}

	return s.monitoring.AvS.CreateInternal(ctx, cluster) //nolint:wrapcheck // names AvS
}

// failed handles an error from AvS: the step runs again or gives up. failed removes the record if AvS has certainly not created
// the evaluation.
func (s createEvaluation) failed(ctx context.Context, operation Operation, object environment.OutsideObject, cause error) (Operation, time.Duration, error) {
	if restclient.NotExecuted(cause) {
		if err := s.objects.RemoveObject(ctx, operation.Record, object); err != nil {
			return operation, 0, err
		}

		operation.Data.Unanswered = 0

		return s.retry(operation, "", cause)
	}

	if operation.Data.Unanswered++; operation.Data.Unanswered > maxUnanswered {
		cause = failure.Wrap(failure.Permanent, cause, "AvS has not responded to %d requests for the evaluation: look for instance %s in AvS",
			operation.Data.Unanswered, operation.InstanceID).WithReason(failure.ReasonTimeout, failure.ComponentAvS)
	}

	return s.retry(operation, "the evaluation may exist twice", cause)
}

// retry repeats the step after a transient error. Once the retry window has passed, or immediately after any other error, it
// gives up: the operation then fails if the evaluation is internal, and continues without it if it is external.
func (s createEvaluation) retry(operation Operation, reason string, err error) (Operation, time.Duration, error) {
	interval, passing := restclient.RetryAfter(err, avsInterval), failure.Is(err, failure.Transient)

	switch {
	case s.external && !passing:
		return process.RetryOperationWithoutFail(operation, reason, err, interval, 0)
	case s.external:
		return process.RetryOperationWithoutFail(operation, reason, err, interval, externalWindow)
	case !passing:
		return operation, 0, err
	default:
		return process.RetryOperation(operation, reason, err, interval, internalWindow)
	}
}

// cluster describes the instance's cluster for AvS. Only external evaluations need the domain.
func (s createEvaluation) cluster(ctx context.Context, operation Operation) (avs.Cluster, error) {
	instance := operation.Data.Instance
	cluster := avs.Cluster{
		InstanceID: instance.ID, Name: instance.Name, GlobalAccountID: instance.GlobalAccountID, SubAccountID: instance.SubAccountID,
		ShootName: instance.ClusterName(), Provider: instance.Provider, PlanName: instance.PlanName,
	}

	switch {
	case !s.external:
	case instance.Provider != "":
		cluster.Domain = instance.ShootName + "." + s.monitoring.ShootDomain
	default: // an earlier step has removed the request from the data
		stored, err := s.instances.Find(ctx, instance.ID)
		if err != nil || stored.Request.Cluster.Own == nil {
			return cluster, err
		}

		cluster.ShootName, cluster.Domain = stored.ClusterName(), stored.Request.Cluster.Own.ShootDomain
	}

	return cluster, nil
}
