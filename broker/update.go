package broker

import (
	"errors"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/rest"
	"github.com/environment-broker/environment-broker/storage"
)

// update answers PATCH /v2/service_instances/{instance_id}. The catalog says that nothing can be updated.
func (a *api) update(r *http.Request) (rest.Answer, error) {
	id, err := instanceID(r)
	if err != nil {
		return rest.Answer{}, err
	}

	sent, err := readBody(r)
	if err != nil {
		return rest.Answer{}, err
	}

	serviceID, planID := sent.required("service_id"), sent.text("plan_id")
	if sent.err != nil {
		return rest.Answer{}, sent.err
	}

	instance, err := a.Instances.Get(r.Context(), a.DB.Reader(), id)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return rest.Answer{}, notFound(textNoInstance)
	case err != nil:
		return rest.Answer{}, err
	}

	if _, err := a.Catalog.Plan(serviceID, firstOf(planID, instance.PlanID)); err != nil {
		return rest.Answer{}, err
	}

	if planID != "" && planID != instance.PlanID {
		return rest.Answer{}, unprocessable(codePlanChange, textNotUpdatable)
	}

	return rest.Answer{}, unprocessable("", textNotUpdatable)
}
