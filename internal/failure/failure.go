package failure

import (
	"errors"
	"fmt"
	"net/http"
)

// Kind classifies an error by the reaction that it needs. MappingOf maps kinds to each protocol.
type Kind string

// The kinds. The engine retries steps that fail with Transient or Waiting; all other kinds fail the operation.
const (
	// Invalid: the request stays wrong until its sender changes it.
	Invalid Kind = "invalid"
	// Conflict: the request does not fit the present state of its object.
	Conflict Kind = "conflict"
	// NotFound: the object of the request does not exist.
	NotFound Kind = "not_found"
	// Quota: a limit of the account or of the infrastructure is reached.
	Quota Kind = "quota"
	// Denied: the caller, or a credential of the service, lacks a permission.
	Denied Kind = "denied"
	// Transient: the same call may succeed later without intervention.
	Transient Kind = "transient"
	// Waiting: nothing is wrong, but something else has to finish first, such as the creation of a cluster.
	Waiting Kind = "waiting"
	// Permanent: an upstream rejected the call, and will reject it again.
	Permanent Kind = "permanent"
	// Internal: a bug or an unforeseen situation. Its text is for the log, never for a user.
	Internal Kind = "internal"
)

// Reasons and components. Their values are those of the Kyma Environment Broker, because existing clients parse them.
const (
	ReasonInternal        = "err_keb_internal"
	ReasonTimeout         = "err_keb_timeout"
	ReasonHTTPStatus      = "err_http_status_code"
	ReasonNotFound        = "err_db_not_found"
	ReasonAlreadyExists   = "err_db_already_exists"
	ReasonConflict        = "err_db_conflict"
	ReasonClusterNotFound = "err_cluster_not_found"
	// ReasonClusterUnreachable: the API server of a cluster does not answer, or rejects the kubeconfig.
	ReasonClusterUnreachable = "err_cluster_unreachable"
	// ReasonRuntimeUnknown: the Provisioner does not know a runtime that it should remove. ReasonNotAdopted: the same, but a
	// Shoot belongs to the runtime.
	ReasonRuntimeUnknown = "err_runtime_unknown"
	ReasonNotAdopted     = "err_runtime_not_adopted"
	// ReasonSystemAway and ReasonBusy: the call was not made, because the circuit breaker is open, or too many calls are in flight.
	ReasonSystemAway = "err_system_unavailable"
	ReasonBusy       = "err_too_many_calls"
	// ReasonDirectorNilResponse and ReasonDirectorIDMismatch: the answer of Director lacks the result, or is about another runtime.
	ReasonDirectorNilResponse = "err_director_nil_response"
	ReasonDirectorIDMismatch  = "err_director_runtime_id_mismatch"

	ComponentBroker             = "keb"
	ComponentBrokerDatabase     = "db - keb"
	ComponentProvisioner        = "provisioner"
	ComponentProvisionerStorage = "db - provisioner"
	ComponentGardener           = "gardener"
	ComponentGardenerClient     = "k8s client - gardener"
	ComponentRuntime            = "k8s client - cluster"
	// ComponentDirector is for errors that Director reports, ComponentDirectorClient for failed calls, ComponentDirectorToken for its token
	// endpoint.
	ComponentDirector       = "compass director"
	ComponentDirectorClient = "compass director client"
	ComponentDirectorToken  = "mps oauth2" //nolint:gosec // no credential
	// ComponentReleases is the registry of Kyma releases.
	ComponentReleases = "releases"
)

// Error is an error that the engine (Kind), users (Text) and programs (Reason and Component) can handle without parsing texts.
type Error struct {
	Kind Kind
	// Reason is a code for programs: a constant of this package, or an error code of Gardener.
	Reason string
	// Component names the system where it happened; empty means the service that reports it.
	Component string
	// Text explains to the user what happened and what to do. It never contains a secret.
	Text string
	// Fields are the paths of the invalid fields in the request, such as a.b[0].c; empty if unknown.
	Fields []string
	// Cause is logged and never shown to a user.
	Cause error
}

// New returns an error of the kind. Format and args make the text for the user, so they must contain no secret.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// Wrap returns an error like New with a cause, which is logged and not shown to the user.
func Wrap(kind Kind, cause error, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Cause: cause}
}

// WithReason sets the reason and the component of the error, and returns the same error.
func (e *Error) WithReason(reason, component string) *Error {
	e.Reason, e.Component = reason, component

	return e
}

// At sets the paths of the invalid fields in the request, and returns the same error.
func (e *Error) At(fields ...string) *Error {
	e.Fields = fields

	return e
}

// Error returns the text and the cause.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Text
	}

	return e.Text + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf returns the kind of the first Error in the chain of err, or Internal if the chain has no Error.
func KindOf(err error) Kind {
	return Of(err).Kind
}

// Of returns the first Error in the chain of err. If the chain has no Error, Of returns an internal error whose Text says nothing about err,
// and whose Cause is err.
func Of(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}

	return &Error{Kind: Internal, Reason: ReasonInternal, Text: "internal error", Cause: err}
}

// Is reports whether err is not nil and of the kind.
func Is(err error, kind Kind) bool {
	return err != nil && KindOf(err) == kind
}

// Mapping maps a kind to the protocols and to the engine.
type Mapping struct {
	// HTTP is the status of OSB and REST responses.
	HTTP int
	// GraphQL is the value of extensions.error_code in GraphQL errors. Clients retry unless the value is between 400 and 499.
	GraphQL int
	// Retry reports whether the engine runs a failed step again.
	Retry bool
}

// MappingOf returns the mapping of the kind. An unknown kind counts as Internal.
func MappingOf(kind Kind) Mapping {
	switch kind {
	case Invalid:
		return Mapping{HTTP: http.StatusBadRequest, GraphQL: http.StatusBadRequest}
	case Conflict:
		return Mapping{HTTP: http.StatusConflict, GraphQL: http.StatusConflict}
	case NotFound:
		return Mapping{HTTP: http.StatusNotFound, GraphQL: http.StatusBadRequest}
	case Quota:
		return Mapping{HTTP: http.StatusUnprocessableEntity, GraphQL: http.StatusBadRequest}
	case Denied:
		return Mapping{HTTP: http.StatusForbidden, GraphQL: http.StatusForbidden}
	case Transient, Waiting:
		return Mapping{HTTP: http.StatusServiceUnavailable, GraphQL: http.StatusServiceUnavailable, Retry: true}
	case Permanent:
		return Mapping{HTTP: http.StatusBadGateway, GraphQL: http.StatusBadRequest}
	case Internal:
	}

	return Mapping{HTTP: http.StatusInternalServerError, GraphQL: http.StatusInternalServerError}
}

// ReasonMeaning documents a reason and its remedy in sentences for the page docs/user/errors.md. All fields are required.
type ReasonMeaning struct{ Reason, Meaning, Remedy string }

// Reasons documents all reasons of this package. Failed operations may also have a code of Gardener as their reason, such as
// ERR_INFRA_QUOTA_EXCEEDED.
func Reasons() []ReasonMeaning {
	return []ReasonMeaning{
		{ReasonInternal, "an internal error of the broker or the Provisioner", "search the log for the ID of the operation"},
		{ReasonTimeout, "something did not finish in time", "`ebctl operation explain` says what the operation waited for; then retry"},
		{ReasonHTTPStatus, "an upstream returned an unexpected response", "check that system; the operation retries by itself"},
		{ReasonNotFound, "a row that the operation needs is gone", "delete the instance if it still exists; the operation has nothing left to do"},
		{ReasonAlreadyExists, "an object with the same name exists", "remove the object that the text names, then retry"},
		{ReasonConflict, "the object changed at the same time", "none: the operation retries by itself; if it has failed, retry it"},
		{ReasonClusterNotFound, "the cluster is not in Gardener", "check the log of Gardener, unless somebody removed the cluster by hand"},
		{ReasonClusterUnreachable, "the API server of the cluster does not answer, or rejects the kubeconfig", "the text names the host and the cause; the operation retries by itself; if it has failed, update the kubeconfig and retry"},
		{
			ReasonRuntimeUnknown, "the Provisioner does not know the runtime that it should remove",
			"check APP_PROVISIONER_URL, then retry. If the cluster is gone, skip `Remove_Runtime`",
		},
		{
			ReasonNotAdopted, "the Provisioner does not know the runtime, but a Shoot belongs to it",
			"adopt the Shoot, or delete it in Gardener and skip `Remove_Runtime`",
		},
		{ReasonSystemAway, "an upstream failed several calls in a row, and the circuit breaker is open", "repair that system: the operation continues by itself"},
		{ReasonBusy, "too many calls to an upstream are in flight", "none: the operation retries by itself"},
		{ReasonDirectorNilResponse, "Director returned no result", "check Director; the operation retries by itself"},
		{ReasonDirectorIDMismatch, "Director returned another runtime", "check Director; the operation retries by itself"},
	}
}
