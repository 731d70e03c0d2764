package broker

import (
	"net/http"
	"slices"
)

// Meaning tells what an answer that is no success means, and what to do about it. The page docs/user/errors.md is written from all of
// them, and tests look that no answer is without one.
type Meaning struct {
	Status int
	// Code is the field error of the answer, empty where the protocol names none.
	Code string
	// When is on what the answer comes, Remedy what its receiver can do.
	When, Remedy string
}

// Meanings are those of all refusals of the Open Service Broker API, each pair of status and code once.
func Meanings() []Meaning {
	return slices.Concat(wrongRequests(), wrongStates(), faults())
}

// wrongRequests are refused whatever there is.
func wrongRequests() []Meaning {
	return []Meaning{
		{
			http.StatusBadRequest, "", "The request is wrong: its body is not one JSON object, a field is missing, too long or of another type, an id " +
				"is not in the catalog or not that of the instance, or a parameter breaks a rule of the plan.",
			"Correct what the description names. Nothing was stored, and the same request stays wrong.",
		},
		{
			http.StatusUnauthorized, "Unauthorized", "The credentials are missing or wrong.",
			"Register the broker again with valid credentials, or ask its operator for some.",
		},
		{
			http.StatusForbidden, "Forbidden", "The credentials are valid, and their user has no role for this.",
			"Ask the operator of the broker for the role osb.",
		},
		{
			http.StatusNotFound, "NotFound", "The broker has nothing at this path.",
			"Check the address with which the broker was registered: it ends before /v2.",
		},
		{
			http.StatusMethodNotAllowed, "MethodNotAllowed", "The path does not know the method.", "Use one of the header Allow.",
		},
		{
			http.StatusPreconditionFailed, "", "The header X-Broker-API-Version is missing, or names a version that is not 2.x.",
			"Send the header with a version from 2.0 on; the broker serves 2.17.",
		},
		{
			http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "The request is longer than 1 MiB.", "Shorten the request.",
		},
		{
			http.StatusTooManyRequests, "TooManyRequests", "The client has sent more requests than the broker allows in a while.",
			"Send the same request again after the seconds of the header Retry-After; ask the operator for a higher limit.",
		},
	}
}

// wrongStates are refused for what there is, or is not.
func wrongStates() []Meaning {
	return []Meaning{
		{
			http.StatusNotFound, "", "There is no such instance or binding, or it is not ready yet.",
			"Check the id. During a creation, poll last_operation until it has succeeded.",
		},
		{
			http.StatusConflict, "", "The id is in use: by an instance or a binding that was ordered otherwise, or whose creation or deletion " +
				"has failed; or what the request waited for was canceled.",
			"Use another id, or delete what is there first; where it was canceled, send the request again.",
		},
		{
			http.StatusGone, "", "What is to be deleted does not exist, or the deletion that is asked for has ended.",
			"Nothing: it is gone.",
		},
		{
			http.StatusUnprocessableEntity, "", "The instance cannot be changed in this way, or a limit of the account is used up; the " +
				"description names which.",
			"Do what the description says.",
		},
		{
			http.StatusUnprocessableEntity, codeAsyncRequired, "The work takes longer than a request may, and the platform has not said that it " +
				"can wait.",
			"Send the request again with accepts_incomplete=true, and poll last_operation.",
		},
		{
			http.StatusUnprocessableEntity, codeConcurrency, "Another operation is at work on the instance or the binding.",
			"Poll last_operation until it has ended, then send the request again.",
		},
		{
			http.StatusUnprocessableEntity, codeMaintenanceConflict, "maintenance_info names another version than the catalog has for the plan.",
			"Fetch the catalog again and send the version of the plan, or none.",
		},
		{
			http.StatusUnprocessableEntity, codePlanChange, "The plan of the instance cannot be changed to the one that is asked for.",
			"Keep the plan, or order a new instance of the other one.",
		},
	}
}

// faults are not of the platform's making.
func faults() []Meaning {
	return []Meaning{
		{
			http.StatusInternalServerError, "", "A fault of the broker. The description tells nothing of it, the broker's log does.",
			"Send the request again; if it fails again, give the operator the header X-Broker-API-Request-Identity of the answer.",
		},
		{
			http.StatusBadGateway, "", "A bind or an unbind that had to be done at once failed at the cluster; the description says how.",
			"Unbind and bind again; if it fails again, ask the operator what is wrong with the cluster.",
		},
		{
			http.StatusServiceUnavailable, "", "The broker's database does not answer for now, and what was sent may be stored or not; or a bind or an " +
				"unbind that had to be done at once takes longer than a request may, and goes on.",
			"Send the same request again after the seconds of the header Retry-After.",
		},
	}
}
