package failure

import "net/http"

// Mapping is the meaning of a kind in each protocol.
type Mapping struct {
	// HTTP is the status of OSB and REST responses.
	HTTP int
	// GraphQL is the value of extensions.error_code. Clients treat 400 to 499 as permanent and retry all others.
	GraphQL int
	// Retry reports whether the engine runs the step again.
	Retry bool
}

// MappingOf returns the mapping of the kind. An unknown kind counts as Internal.
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
