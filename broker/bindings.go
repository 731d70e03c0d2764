package broker

import (
	"errors"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/rest"
	"github.com/environment-broker/environment-broker/storage"
)

// bind answers PUT …/service_bindings/{binding_id}. The catalog says that nothing can be bound.
func (a *api) bind(r *http.Request) (rest.Answer, error) {
	id, err := instanceID(r)
	if err != nil {
		return rest.Answer{}, err
	}

	if _, err := readBody(r); err != nil {
		return rest.Answer{}, err
	}

	_, err = a.Instances.Get(r.Context(), a.DB.Reader(), id)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return rest.Answer{}, notFound(textNoInstance)
	case err != nil:
		return rest.Answer{}, err
	}

	return rest.Answer{}, unprocessable("", textNotBindable)
}

// unbind answers DELETE …/service_bindings/{binding_id}. No binding was ever made.
func (a *api) unbind(r *http.Request) (rest.Answer, error) {
	if _, err := idsQuery(r); err != nil {
		return rest.Answer{}, err
	}

	return rest.Answer{}, rest.Refuse(http.StatusGone, textNoBinding)
}

// fetchBinding answers GET …/service_bindings/{binding_id}.
func (a *api) fetchBinding(_ *http.Request) (rest.Answer, error) {
	return rest.Answer{}, notFound(textNoBinding)
}

// lastBindingOperation answers GET …/service_bindings/{binding_id}/last_operation.
func (a *api) lastBindingOperation(_ *http.Request) (rest.Answer, error) {
	return rest.Answer{}, notFound(textNoBinding)
}
