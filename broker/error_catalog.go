package broker

import (
	"net/http"
	"slices"
)

// DocumentedError documents an error response and its remedy. The page docs/user/errors.md is generated from all of them, and tests
// check that no error response lacks one.
type DocumentedError struct {
	Status int
	// Code is the field error of the response, empty if the protocol defines none.
	Code string
	// When names the causes, Remedy what the receiver of the response can do.
	When, Remedy string
}

// ErrorCatalog lists the error responses of the Open Service Broker API, each pair of status and code once. A new code needs an entry.
func ErrorCatalog() []DocumentedError {
	return slices.Concat(requestErrors(), stateErrors(), brokerErrors())
}

// requestErrors do not depend on the state of the instance.
func requestErrors() []DocumentedError {
	return []DocumentedError{
		{
			http.StatusBadRequest, "", "The request is invalid: its body is not one JSON object, a field is missing, too long or of the wrong type, an id " +
				"is not in the catalog or not that of the instance, or a parameter breaks a rule of the plan.",
			"Correct what the description names. Nothing was stored; the same request fails again.",
		},
		{
			http.StatusUnauthorized, "Unauthorized", "The credentials are missing or wrong.",
			"Register the broker again with valid credentials. Its operator issues them.",
		},
		{
			http.StatusForbidden, "Forbidden", "The credentials are valid, but their user lacks the role for the request.",
			"Ask the operator of the broker for the role osb.",
		},
		{
			http.StatusNotFound, "NotFound", "The path does not exist.",
			"Check the URL with which the broker was registered: it ends before /v2.",
		},
		{
			http.StatusMethodNotAllowed, "MethodNotAllowed", "The path does not support the method.", "Use a method of the header Allow.",
		},
		{
			http.StatusPreconditionFailed, "", "The header X-Broker-API-Version is missing, or its version is not 2.x.",
			"Send the header with version 2.0 or later; the broker serves 2.17.",
		},
		{
			http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "The request is longer than 1 MiB.", "Shorten the request.",
		},
		{
			http.StatusTooManyRequests, "TooManyRequests", "The client exceeds its rate limit.",
			"Wait for the seconds in the header Retry-After, then send the same request again. The operator can raise the limit.",
		},
	}
}

// stateErrors depend on the state of the instance or the binding.
func stateErrors() []DocumentedError {
	return []DocumentedError{
		{
			http.StatusNotFound, "", "The instance or binding does not exist, or is not ready yet.",
			"Check the id. While the instance or binding is being created, poll last_operation until the state is succeeded.",
		},
		{
			http.StatusConflict, "", "The id is in use by an instance or a binding that was ordered with other values, or whose creation or deletion " +
				"failed; or the operation that the request waited for was canceled.",
			"Use another id, or delete the existing one first. After a cancellation, send the request again.",
		},
		{
			http.StatusGone, "", "The instance or binding does not exist, or its deletion has finished.",
			"None is needed.",
		},
		{
			http.StatusUnprocessableEntity, "", "The state of the instance does not allow the change, or a limit of the account is reached; the " +
				"description says which.",
			"Do what the description says.",
		},
		{
			http.StatusUnprocessableEntity, codeAsyncRequired, "The work takes longer than a request may take, and the platform does not accept an " +
				"asynchronous answer.",
			"Send the request again with accepts_incomplete=true, and poll last_operation.",
		},
		{
			http.StatusUnprocessableEntity, codeConcurrency, "Another operation on the instance or the binding is in progress.",
			"Poll last_operation until it has finished, then send the request again.",
		},
		{
			http.StatusUnprocessableEntity, codeMaintenanceConflict, "The version in maintenance_info is not the plan's version in the catalog.",
			"Fetch the catalog again, and send the version of the plan or none.",
		},
		{
			http.StatusUnprocessableEntity, codePlanChange, "The plan of the instance cannot be changed to the requested one.",
			"Keep the plan, or order a new instance of the other plan.",
		},
	}
}

// brokerErrors are not caused by the platform.
func brokerErrors() []DocumentedError {
	return []DocumentedError{
		{
			http.StatusInternalServerError, "", "The broker failed. The cause is in its log, not in the description.",
			"Send the request again. If it fails again, give the operator the header X-Broker-API-Request-Identity of the answer.",
		},
		{
			http.StatusBadGateway, "", "A synchronous bind or unbind failed at the cluster; the description says how.",
			"Unbind and bind again. If it fails again, ask the operator about the cluster.",
		},
		{
			http.StatusServiceUnavailable, "", "The broker's database does not answer, and the request may be stored or not; or a synchronous bind or " +
				"unbind takes longer than a request may take, and continues.",
			"Wait for the seconds in the header Retry-After, then send the same request again.",
		},
	}
}
