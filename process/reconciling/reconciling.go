// Package reconciling contains the parts of the broker's processes that use the Reconciler, which installs Kyma on runtimes: they
// register a runtime with its Kyma configuration, and wait until the Reconciler has installed it.
//
// The configuration and the kubeconfig contain secrets. The step that sends them reads them itself, and reads them again when it
// is retried. The latest configuration is stored sealed, for renewals of the kubeconfig. The kubeconfig is never stored. The
// registration is recorded before it is sent, so that a deletion always finds it.
package reconciling

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/process"
)

// System is the name of the Reconciler in process descriptions.
const System = "Reconciler"

// After an error, the step tries to register the runtime every applyInterval for at most applyWindow.
const (
	applyInterval = 10 * time.Second
	applyWindow   = time.Hour
)

// Operation is the input and the result of the steps.
type Operation = process.Operation[environment.Data]

// Client calls the Reconciler. All calls are idempotent.
type Client interface {
	Apply(ctx context.Context, cluster reconciler.Cluster) (reconciler.State, error)
	Find(ctx context.Context, runtimeID string, version int64) (reconciler.State, error)
	Remove(ctx context.Context, runtimeID string) (reconciler.State, error)
}

// Objects records the objects of instances in other systems. SetObject fails if the operation has lost its lease.
type Objects interface {
	FindObject(ctx context.Context, instanceID, system, kind string) (environment.OutsideObject, error)
	SetObject(ctx context.Context, by process.Record, object environment.OutsideObject) error
}

// Kubeconfigs issues admin kubeconfigs for runtimes.
type Kubeconfigs interface {
	AdminKubeconfig(ctx context.Context, instance environment.Instance) (secret.String, error)
}

// Reconciler installs Kyma. All processes share one Reconciler.
type Reconciler struct {
	// Client is nil if the Reconciler is turned off.
	Client      Client
	Objects     Objects
	Kubeconfigs Kubeconfigs
	// ShootDomain is the parent domain of the clusters' domains, or empty.
	ShootDomain string
	// Limit is how long an operation waits for the Reconciler.
	Limit time.Duration
}

// Off returns the error of a step that needs the Reconciler while it is turned off.
func Off() error {
	return failure.New(failure.Permanent, "the Reconciler is turned off: an operator must set APP_RECONCILER_URL").
		WithReason(failure.ReasonInternal, failure.ComponentReconciler)
}

// Installs returns the condition that holds if the Reconciler installs Kyma on the runtime.
func Installs() process.Condition[environment.Data] {
	return process.Condition[environment.Data]{
		Text:  "the Reconciler installs Kyma",
		Holds: func(operation Operation) bool { return operation.Data.Instance.InReconciler() },
	}
}

// Apply registers the runtime with the Kyma installation of the instance. The Reconciler accepts a new kubeconfig only together
// with a new description, so the description contains the ID of the operation. A step in the next stage must wait with Await.
func (r Reconciler) Apply(ctx context.Context, operation Operation, instance environment.Instance) (Operation, time.Duration, error) {
	if r.Client == nil {
		return operation, 0, Off()
	}

	if kyma := instance.Request.Cluster.Kyma; kyma == nil || kyma.Installation == nil {
		return operation, 0, failure.New(failure.Internal, "instance %s has no Kyma to install", instance.ID)
	}

	kubeconfig, err := r.Kubeconfigs.AdminKubeconfig(ctx, instance)
	if err != nil {
		return operation, 0, err
	}

	object, err := r.Objects.FindObject(ctx, operation.InstanceID, environment.SystemReconciler, environment.KindCluster)
	if err != nil {
		return operation, 0, err
	}

	if object.Key != "" && object.Key != instance.RuntimeID { // the removal of an earlier runtime was abandoned
		if _, err := r.Client.Remove(ctx, object.Key); err != nil {
			return retry(operation, "removing the previous runtime", err)
		}

		object.State = ""
	}

	if object.State != environment.OutsideCreated {
		object.Key, object.State = instance.RuntimeID, environment.OutsideCreating
	}

	// After this write, no renewal of the kubeconfig starts, because a renewal would notice the operation. AwaitRenewal detects a
	// renewal that started earlier.
	if err := r.Objects.SetObject(ctx, operation.Record, object); err != nil {
		return operation, 0, err
	}

	wait, err := AwaitRenewal(ctx, r.Objects, operation)

	switch {
	case err != nil:
		return operation, 0, err
	case wait > 0:
		return process.Await(operation, RenewalInProgress, wait, applyWindow)
	}

	domain := Domain(instance, r.ShootDomain)

	cluster := reconciler.NewCluster(instance, kubeconfig, domain, "operation "+operation.ID)

	applied, err := r.Client.Apply(ctx, cluster)
	if err != nil {
		return retry(operation, "", err)
	}

	if object.Configuration, err = cluster.Encode(); err != nil {
		return operation, 0, err
	}

	operation.Data.ConfigurationVersion = applied.ConfigurationVersion

	_, until := clusterclient.Validity(kubeconfig)
	object.State, object.Credential = environment.OutsideCreated, environment.NewCredential(operation.Now(), until)

	return operation, 0, r.Objects.SetObject(ctx, operation.Record, object)
}

// RenewalInProgress is the progress message of an operation that waits for a renewal.
const RenewalInProgress = "the kubeconfig of the Reconciler is being renewed"

// AwaitRenewal returns how long a renewal of the Reconciler's kubeconfig may still take. The result is zero or negative if no renewal
// is in progress. The caller must first have written the runtime's record with SetObject, so that no other renewal starts.
func AwaitRenewal(ctx context.Context, objects interface {
	FindObject(ctx context.Context, instanceID, system, kind string) (environment.OutsideObject, error)
}, operation Operation,
) (time.Duration, error) {
	object, err := objects.FindObject(ctx, operation.InstanceID, environment.SystemReconciler, environment.KindCluster)

	return object.Credential.RenewingUntil.Sub(operation.Now()), err
}

// Domain returns the domain of the instance's runtime, a subdomain of shootDomain. It returns "" if shootDomain is empty.
func Domain(instance environment.Instance, shootDomain string) string {
	if shootDomain == "" {
		return ""
	}

	return instance.ShootName + "." + shootDomain
}

// retry repeats a step after a transient error. Other errors fail the operation.
func retry(operation Operation, reason string, err error) (Operation, time.Duration, error) {
	if !failure.Is(err, failure.Transient) {
		return operation, 0, err
	}

	return process.RetryOperation(operation, reason, err, restclient.RetryAfter(err, applyInterval), applyWindow)
}
