package failure

import (
	"errors"
	"fmt"
)

// Kind says what an error means for whoever has to act on it. The table in table.go maps it to each protocol.
type Kind string

// The kinds. Only Transient and Waiting are tried again by the engine.
const (
	// Invalid: the request is wrong and stays wrong until its sender changes it.
	Invalid Kind = "invalid"
	// Conflict: the request does not fit the present state of what it names.
	Conflict Kind = "conflict"
	// NotFound: what the request names does not exist.
	NotFound Kind = "not_found"
	// Quota: a limit of the account or of the infrastructure is used up.
	Quota Kind = "quota"
	// Denied: the caller, or a credential of ours, is not allowed to do this.
	Denied Kind = "denied"
	// Transient: the same call may succeed later without anybody's help.
	Transient Kind = "transient"
	// Waiting: nothing is wrong, something else has to finish first.
	Waiting Kind = "waiting"
	// Permanent: an outside system refused for good.
	Permanent Kind = "permanent"
	// Internal: a fault of ours. Its text is for the log, never for a user.
	Internal Kind = "internal"
)

// Reasons and components are values that clients of the former systems know.
const (
	ReasonInternal        = "err_keb_internal"
	ReasonTimeout         = "err_keb_timeout"
	ReasonHTTPStatus      = "err_http_status_code"
	ReasonNotFound        = "err_db_not_found"
	ReasonAlreadyExists   = "err_db_already_exists"
	ReasonConflict        = "err_db_conflict"
	ReasonClusterNotFound = "err_cluster_not_found"
	// ReasonSystemAway and ReasonBusy: a call was not made, because the system does not answer, or answers too many others.
	ReasonSystemAway = "err_system_unavailable"
	ReasonBusy       = "err_too_many_calls"
	// ReasonDirectorNilResponse and ReasonDirectorIDMismatch: Director answered without what it was asked for, or about another runtime.
	ReasonDirectorNilResponse = "err_director_nil_response"
	ReasonDirectorIDMismatch  = "err_director_runtime_id_mismatch"

	ComponentBroker             = "keb"
	ComponentBrokerDatabase     = "db - keb"
	ComponentProvisioner        = "provisioner"
	ComponentProvisionerStorage = "db - provisioner"
	ComponentGardener           = "gardener"
	ComponentGardenerClient     = "k8s client - gardener"
	ComponentRuntime            = "k8s client - cluster"
	// ComponentDirector is Director's own word, ComponentDirectorClient what happens on the way to it, ComponentDirectorToken the
	// access to it.
	ComponentDirector       = "compass director"
	ComponentDirectorClient = "compass director client"
	ComponentDirectorToken  = "mps oauth2" //nolint:gosec // no credential
	// ComponentReleases is the registry of the releases of Kyma.
	ComponentReleases = "releases"
)

// Error is an error that explains itself: to the engine by its kind, to a person by its text, to a machine by reason and
// component.
type Error struct {
	Kind Kind
	// Reason is a short machine-readable cause, such as ReasonTimeout or a code of Gardener.
	Reason string
	// Component names the system in which it happened; empty for the service that tells of it.
	Component string
	// Text is for the user: what happened and what to do. It never holds a secret.
	Text string
	// Fields are where in the request what is wrong stands, as paths such as a.b[0].c; empty where that is not known.
	Fields []string
	// Cause is for the log.
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

// WithReason sets the machine-readable cause and returns the same error.
func (e *Error) WithReason(reason, component string) *Error {
	e.Reason, e.Component = reason, component

	return e
}

// At sets the fields of the request that are wrong and returns the same error.
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

// Of returns the first Error in err's chain. An error without one is internal: its text stays out of sight.
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
