package failure

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Kind classifies an error by the reaction that it needs. MappingOf maps kinds to each protocol.
type Kind string

// The kinds. The engine retries a step that fails with Transient or Waiting. With any other kind, the operation fails.
const (
	// Invalid: the request is invalid and will fail again unless its sender changes it.
	Invalid Kind = "invalid"
	// Conflict: the request conflicts with the current state of the object that it concerns.
	Conflict Kind = "conflict"
	// NotFound: the object that the request concerns does not exist.
	NotFound Kind = "not_found"
	// Quota: a limit of the account or of the infrastructure has been reached.
	Quota Kind = "quota"
	// Denied: the caller or the service lacks a permission.
	Denied Kind = "denied"
	// Transient: the same call may succeed later without intervention.
	Transient Kind = "transient"
	// Waiting: something else has to finish first, such as the creation of a cluster. This is not a fault.
	Waiting Kind = "waiting"
	// Permanent: an upstream rejected the call and will reject it again.
	Permanent Kind = "permanent"
	// Internal: a bug or an unforeseen situation. The text is logged and never shown to a user.
	Internal Kind = "internal"
)

// Reasons and components. Where the Kyma Environment Broker has the same reason or component, the value is the same, because
// existing clients parse it.
const (
	ReasonInternal        = "err_keb_internal"
	ReasonTimeout         = "err_keb_timeout"
	ReasonHTTPStatus      = "err_http_status_code"
	ReasonNotFound        = "err_db_not_found"
	ReasonAlreadyExists   = "err_db_already_exists"
	ReasonConflict        = "err_db_conflict"
	ReasonClusterNotFound = "err_cluster_not_found"
	// ReasonClusterUnreachable: the API server of a cluster does not respond or rejects the kubeconfig.
	ReasonClusterUnreachable = "err_cluster_unreachable"
	// ReasonRuntimeUnknown: the Provisioner does not know a runtime that it should remove. ReasonNotAdopted: the Provisioner does
	// not know the runtime, although the runtime has a Shoot.
	ReasonRuntimeUnknown = "err_runtime_unknown"
	ReasonNotAdopted     = "err_runtime_not_adopted"
	// ReasonSystemUnavailable: the call was not made because the circuit breaker is open. ReasonBusy: the call was not made because too
	// many calls are in flight.
	ReasonSystemUnavailable = "err_system_unavailable"
	ReasonBusy              = "err_too_many_calls"
	// ReasonDirectorNilResponse: the response of Director has no result. ReasonDirectorIDMismatch: the response of Director
	// describes a different runtime.
	ReasonDirectorNilResponse = "err_director_nil_response"
	ReasonDirectorIDMismatch  = "err_director_runtime_id_mismatch"
	// ReasonNotStarted: an upgrade did not start in its maintenance window, or before its deadline.
	ReasonNotStarted = "err_not_started_in_time"
	// ReasonReconcilerGaveUp: the Reconciler has given up installing or removing Kyma.
	ReasonReconcilerGaveUp = "err_reconciler_gave_up"
	// ReasonConfiguration: operators have configured something that cannot be used, such as a malformed ConfigMap.
	ReasonConfiguration = "err_configuration"

	ComponentBroker             = "keb"
	ComponentBrokerDatabase     = "db - keb"
	ComponentProvisioner        = "provisioner"
	ComponentProvisionerStorage = "db - provisioner"
	ComponentGardener           = "gardener"
	ComponentGardenerClient     = "k8s client - gardener"
	ComponentRuntime            = "k8s client - cluster"
	// ComponentDirector is for errors that Director reports, ComponentDirectorClient for failed calls to Director, and
	// ComponentDirectorToken for errors of Director's token endpoint.
	ComponentDirector       = "compass director"
	ComponentDirectorClient = "compass director client"
	ComponentDirectorToken  = "mps oauth2" //nolint:gosec // no credential
	// ComponentEDP is the Event Data Platform.
	ComponentEDP = "edp"
	// ComponentIAS is Identity Authentication.
	ComponentIAS = "ias"
	// ComponentAvS is the availability service.
	ComponentAvS = "avs"
	// ComponentNotification is the service that informs customers about maintenance.
	ComponentNotification = "notification"
	// ComponentBundles is the bundle provisioner that installs components.
	ComponentBundles = "bundle provisioner"
	// ComponentCleanupHook is the hook that empties accounts of the account pool.
	ComponentCleanupHook = "cleanup hook"
	// ComponentCIS is SAP Cloud Management, which reports deleted subaccounts.
	ComponentCIS = "cis"
	// ComponentReconciler is Kyma's Reconciler.
	ComponentReconciler = "reconciler"
	// ComponentControlPlane is the cluster with the Kyma configuration.
	ComponentControlPlane = "k8s client - control plane"
	// ComponentLifecycleManager is Kyma's Lifecycle Manager.
	ComponentLifecycleManager = "lifecycle-manager"
	// ComponentReleases is the registry that contains the Kyma releases.
	ComponentReleases = "releases"
)

// Error is a classified error. The engine uses Kind, users read Text, and programs use Reason and Component, so nothing has to
// parse error messages.
type Error struct {
	Kind Kind
	// Reason is a code for programs: a constant of this package or a Gardener error code.
	Reason string
	// Component names the system where the error occurred; empty means the service that reports the error.
	Component string
	// Text explains to the user what happened and how to react. It must not contain secrets or messages of other systems. Such
	// messages belong in Detail.
	Text string
	// Detail is the report of an upstream, for operators. WithDetail sets it. It is never returned to platform users.
	Detail string
	// Fields are the paths of the invalid fields of the request, such as a.b[0].c. It is empty if the fields are unknown.
	Fields []string
	// Cause is logged and never shown to a user.
	Cause error
}

// While prefixes an error with the activity that failed, as in "listing instances: connection refused". It keeps the kind of the
// error. If err is nil, While returns nil, so a function can end with "return rows, failure.While(err, ...)".
func While(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}

	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// Unless returns an error with the formatted text unless the value is valid, for lists of checks in errors.Join.
func Unless(valid bool, format string, args ...any) error {
	if valid {
		return nil
	}

	return fmt.Errorf(format, args...)
}

// New returns an error of the given kind. The format and the arguments become the message for the user, so they must not contain
// secrets.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// Wrap is like New but adds a cause, which is logged and not shown to the user. If the cause is an Error, its detail becomes the
// detail of the new error.
func Wrap(kind Kind, cause error, format string, args ...any) *Error {
	wrapped := &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Cause: cause}
	if known, ok := errors.AsType[*Error](cause); ok {
		wrapped.Detail = known.Detail
	}

	return wrapped
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

// WithDetail sets the report of an upstream, as one printable line of a limited length, and returns the same error. The upstream
// determines this text, so it can contain anything, such as internal names or instructions to the reader.
func (e *Error) WithDetail(reported string) *Error {
	e.Detail = Printable(reported, maxDetail)

	return e
}

// ForOperators returns the text and the detail. Show the result only to operators, in the log, and in the timeline of an
// operation.
func (e *Error) ForOperators() string { return WithDetail(e.Text, e.Detail) }

// WithDetail returns the text followed by the detail, which may be empty. If the detail contains the text, it returns only the detail. A
// reference to the details in the timeline is left out, because they follow.
func WithDetail(text, detail string) string {
	if detail == "" {
		return text
	}

	text = strings.TrimSuffix(text, seeTimeline)
	if strings.Contains(detail, text) {
		return detail
	}

	return text + ": " + detail
}

// Error returns the text, the detail and the cause, for the log.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.ForOperators()
	}

	return e.ForOperators() + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf returns the kind of the first Error in the chain of err, or Internal if the chain has no Error.
func KindOf(err error) Kind {
	return Of(err).Kind
}

// Of returns the first Error in the chain of err. If the chain has no Error, Of returns an internal error with err as its Cause.
// The Text of that error reveals nothing about err.
func Of(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}

	return &Error{Kind: Internal, Reason: ReasonInternal, Text: "internal error", Cause: err}
}

// Is reports whether err is an error of the given kind. It returns false if err is nil.
func Is(err error, kind Kind) bool {
	return err != nil && KindOf(err) == kind
}

// Mapping describes how the protocols and the engine handle a kind.
type Mapping struct {
	// HTTP is the status of OSB and REST responses.
	HTTP int
	// GraphQL is the value of extensions.error_code in GraphQL errors. Clients retry unless the value is between 400 and 499.
	GraphQL int
	// Retry reports whether the engine runs a failed step again.
	Retry bool
}

// MappingOf returns the mapping of the kind. It treats an unknown kind as Internal.
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

// ReasonMeaning documents a reason for docs/user/errors.md: what it means and how to react. All fields are required.
type ReasonMeaning struct{ Reason, Meaning, Remedy string }

// Reasons documents all reasons of this package. The reason of a failed operation can also be a Gardener code, such as
// ERR_INFRA_QUOTA_EXCEEDED.
func Reasons() []ReasonMeaning {
	return []ReasonMeaning{
		{ReasonInternal, "an internal error of the broker or the Provisioner", "search the logs of both services for the ID of the operation"},
		{ReasonTimeout, "something did not finish in time", "run `ebctl operation explain` to see what the operation waited for, then retry the operation"},
		{ReasonHTTPStatus, "an upstream returned an unexpected response", "check that system; the operation retries automatically"},
		{ReasonNotFound, "a database record that the operation needs no longer exists", "the operation cannot continue; delete the instance if it still exists"},
		{ReasonAlreadyExists, "an object with the same name already exists", "remove the object that the description names, then retry"},
		{ReasonConflict, "the object was changed at the same time", "usually nothing: the operation retries automatically; if it has failed, retry it"},
		{ReasonClusterNotFound, "Gardener does not have the cluster", "check the logs of Gardener, unless somebody removed the cluster manually"},
		{ReasonClusterUnreachable, "the API server of the cluster does not respond or rejects the kubeconfig", "see the description for the host and the cause; the operation retries automatically; if it has failed, update the kubeconfig and retry"},
		{
			ReasonRuntimeUnknown, "the Provisioner does not know the runtime that it was asked to remove",
			"check APP_PROVISIONER_URL, then retry. If the cluster is gone, skip `Remove_Runtime`",
		},
		{
			ReasonNotAdopted, "the Provisioner does not know the runtime, although a Shoot belongs to the runtime",
			"delete the Shoot in Gardener and skip `Remove_Runtime`",
		},
		{ReasonSystemUnavailable, "an upstream failed several calls in a row, and the circuit breaker is open", "restore that system; the operation then continues automatically"},
		{ReasonBusy, "too many calls to an upstream are in flight", "nothing: the operation retries automatically"},
		{ReasonDirectorNilResponse, "Director returned no result", "check Director; the operation retries automatically"},
		{ReasonDirectorIDMismatch, "Director returned a different runtime", "check Director; the operation retries automatically"},
		{ReasonNotStarted, "an upgrade did not start in its maintenance window or before its deadline, and has changed nothing", "nothing if it belongs to an orchestration, which starts it again in the next window before the deadline; otherwise retry it"},
		{ReasonReconcilerGaveUp, "the Reconciler has given up installing or removing Kyma", "run `ebctl operation explain` to see the failed components, correct them, then retry the operation"},
		{ReasonConfiguration, "something that operators configured is invalid, such as a malformed ConfigMap", "correct what the description names; if the operation has failed, retry it"},
	}
}
