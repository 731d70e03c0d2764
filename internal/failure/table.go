package failure

import "net/http"

// Mapping tells what a kind means in each protocol.
type Mapping struct {
	// HTTP is the status of the OSB and REST answers.
	HTTP int
	// GraphQL is the value of extensions.error_code. Clients take 400 to 499 as permanent and all else as worth a retry.
	GraphQL int
	// Retry says whether the engine runs the step again.
	Retry bool
}

// MappingOf returns what the kind means in each protocol. An unknown kind is an internal error.
func MappingOf(kind Kind) Mapping {
	switch kind {
	case Invalid:
		return Mapping{HTTP: http.StatusBadRequest, GraphQL: http.StatusBadRequest}
	case Conflict:
		return Mapping{HTTP: http.StatusConflict, GraphQL: http.StatusBadRequest}
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
