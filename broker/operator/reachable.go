package operator

import (
	"errors"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
)

// reachable returns the instance that the path names. It has a runtime, was made with success, and is not
// suspended or being deleted.
// Beside an error it returns what is known of it, for the audit.
func (a *api) reachable(r *http.Request) (environment.Instance, error) {
	id, err := segment(r, "instance_id")
	if err != nil {
		return environment.Instance{}, err
	}

	httpserver.Note(r.Context(), logging.InstanceID, id)

	instance, err := a.Instances.Get(r.Context(), a.DB.Reader(), id)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return environment.Instance{ID: id}, notFound(textNoInstance)
	case err != nil:
		return environment.Instance{ID: id}, err
	}

	past, err := a.Operations.OfInstance(r.Context(), a.DB.Reader(), id)

	switch {
	case err != nil:
		return instance, err
	case environment.PhaseOf(past) != environment.Active || instance.RuntimeID == "":
		return instance, notFound(textNoRuntime)
	default:
		return instance, nil
	}
}
