package environment

import (
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// OutsideObject is an object of an instance in another system. It is recorded before the call that creates it.
type OutsideObject struct {
	InstanceID string
	// System is the name of the system, such as edp. Kind distinguishes the objects of an instance in the system.
	System, Kind string
	// Key is the name or ID of the object in the system. It is empty if the system assigns the ID and the broker has not received
	// it yet.
	Key       string
	State     OutsideState
	UpdatedAt time.Time
	// Credential describes the runtime's kubeconfig that the object contains. It is zero if the object contains no kubeconfig, or
	// one that was never renewed.
	Credential Credential
	// Configuration is set only when a call has just created or changed the object: it is the configuration that the call has
	// sent. Records read from the store omit it, because the store returns the configuration separately.
	Configuration secret.String
}

// Credential describes a runtime's kubeconfig that is stored in another system: when the kubeconfig is valid, and when the broker
// renews it. The kubeconfig itself is not stored.
type Credential struct {
	IssuedAt, ExpiresAt time.Time
	// RenewAt is when the broker renews the kubeconfig.
	RenewAt time.Time
	// RenewingUntil is the time until which a renewal may be in progress, or zero. Operations that change the object wait until
	// then.
	RenewingUntil time.Time
	// Problem says why the latest renewal failed, for operators.
	Problem string
}

// unknownValidity is how long a kubeconfig is assumed to be valid if it does not contain its expiry.
const unknownValidity = 4 * time.Hour

// NewCredential returns the Credential of a kubeconfig that was issued at issued and expires at until. If until is zero, it assumes
// unknownValidity. The kubeconfig is renewed after half of its validity, so the other half remains for retries.
func NewCredential(issued, until time.Time) Credential {
	if until.IsZero() {
		until = issued.Add(unknownValidity)
	}

	return Credential{IssuedAt: issued, ExpiresAt: until, RenewAt: issued.Add(until.Sub(issued) / 2)} //nolint:mnd // half
}

// OutsideState is the state of an OutsideObject.
type OutsideState string

// The states of an OutsideObject. An object that is gone has no record.
const (
	// OutsideCreating: the object may exist, completely or in part.
	OutsideCreating OutsideState = "creating"
	OutsideCreated  OutsideState = "created"
	// OutsideRemoving: the object is being removed and may be gone.
	OutsideRemoving OutsideState = "removing"
	// OutsideLeftOver: the removal was abandoned, and the object may still exist.
	OutsideLeftOver OutsideState = "left over"
	// OutsideUncertain: the system has not responded to a request that creates an object, and does not recognize repeated
	// requests. A second object may therefore exist, in addition to the one whose ID another record contains.
	OutsideUncertain OutsideState = "may exist twice"
)

// The systems of OutsideObjects and the kinds of objects in them.
const (
	SystemEDP = "edp"
	// KindDataTenant is the registration of the instance's subaccount, which all instances of the subaccount share.
	KindDataTenant = "data tenant"

	SystemIAS = "ias"
	// KindServiceProvider is the service provider that Kyma Environment Broker registered for an instance's Grafana.
	KindServiceProvider = "service provider"

	SystemAvS = "avs"
	// KindInternalEvaluation and KindExternalEvaluation are the evaluations of an instance. Their keys are the IDs that AvS
	// assigned.
	KindInternalEvaluation = "internal evaluation"
	KindExternalEvaluation = "external evaluation"

	SystemLifecycleManager = "lifecycle-manager"
	// KindKubeconfig is the Secret with the runtime's kubeconfig, and KindKymaResource is the runtime's Kyma resource. Both are
	// in the control plane. Their keys have the form that lifecyclemanager.Ref.String returns.
	KindKubeconfig   = "kubeconfig"
	KindKymaResource = "Kyma resource"

	SystemReconciler = "reconciler"
	// KindCluster is the registration of an instance's runtime. Its key is the ID of the runtime.
	KindCluster = "cluster"
)

// KindWithoutID returns the kind of the record that counts objects of the given kind whose IDs the broker never received. The
// record's key is the number of requests that may have created such an object.
func KindWithoutID(kind string) string { return kind + " without ID" }

// KindMaintenance returns the kind of the record for an object of the given kind that is in maintenance. The record's key is the
// object's state before the maintenance.
func KindMaintenance(kind string) string { return kind + " in maintenance" }
