package failure

import (
	"errors"
	"fmt"
)

// Kind classifies an error by the reaction that it needs. MappingOf maps it to each protocol.
type Kind string

// The kinds. The engine retries Transient and Waiting only.
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
	// Waiting: no error; something else has to finish first.
	Waiting Kind = "waiting"
	// Permanent: an upstream rejected the call, and will reject it again.
	Permanent Kind = "permanent"
	// Internal: a bug or an unforeseen situation. Its text is for the log, never for a user.
	Internal Kind = "internal"
)

// Reasons and components. The values are those of the Kyma Environment Broker, which its clients parse.
const (
	ReasonInternal        = "err_keb_internal"
	ReasonTimeout         = "err_keb_timeout"
	ReasonHTTPStatus      = "err_http_status_code"
	ReasonNotFound        = "err_db_not_found"
	ReasonAlreadyExists   = "err_db_already_exists"
	ReasonConflict        = "err_db_conflict"
	ReasonClusterNotFound = "err_cluster_not_found"
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

// Error is an error with its meaning for the engine (kind), people (text) and programs (reason and component).
type Error struct {
	Kind Kind
	// Reason is the cause for programs, such as ReasonTimeout or an error code of Gardener.
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

// New returns an error of the kind with a text for the user.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// Wrap returns an error of the kind with a text for the user and the error that caused it.
func Wrap(kind Kind, cause error, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Cause: cause}
}

// WithReason sets reason and component, and returns the same error.
func (e *Error) WithReason(reason, component string) *Error {
	e.Reason, e.Component = reason, component

	return e
}

// At sets the paths of the invalid fields, and returns the same error.
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

// KindOf returns the kind of the first Error in err's chain, Internal when there is none.
func KindOf(err error) Kind {
	return Of(err).Kind
}

// Of returns the first Error in err's chain, or an internal error whose text hides that of err.
func Of(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}

	return &Error{Kind: Internal, Reason: ReasonInternal, Text: "internal error", Cause: err}
}

// Is reports whether err is of the kind.
func Is(err error, kind Kind) bool {
	return err != nil && KindOf(err) == kind
}
