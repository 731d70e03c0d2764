package broker

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// fetched is the answer to a fetch: the library's form with what it lacks.
type fetched struct {
	apiresponses.GetInstanceResponse

	MaintenanceInfo *domain.MaintenanceInfo `json:"maintenance_info,omitempty"`
}

// fetch answers GET /v2/service_instances/{instance_id}.
func (a *api) fetch(r *http.Request) (httpserver.Answer, error) {
	id, err := instanceID(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	newest, _, err := a.latest(r.Context(), a.DB.Reader(), id, lifeKinds()...)
	if err != nil {
		return httpserver.Answer{}, err
	}

	if beingDeleted(newest) {
		return httpserver.Answer{}, concurrent()
	}

	instance, err := a.Instances.Get(r.Context(), a.DB.Reader(), id)
	if errors.Is(err, storage.ErrNotFound) {
		return httpserver.Answer{}, notFound(textNoInstance)
	}

	if err != nil {
		return httpserver.Answer{}, err
	}

	made, _, err := a.latest(r.Context(), a.DB.Reader(), id, environment.KindProvision)
	if err != nil {
		return httpserver.Answer{}, err
	}

	if made.State != process.Succeeded {
		return httpserver.Answer{}, notFound(textNotReady)
	}

	return httpserver.OK(a.fetchedOf(instance)), nil
}

func (a *api) fetchedOf(instance environment.Instance) fetched {
	parameters := catalog.Shown(instance.Request.Parameters)
	if parameters == nil {
		parameters = json.RawMessage(`{}`)
	}

	body := fetched{GetInstanceResponse: apiresponses.GetInstanceResponse{
		ServiceID:    instance.ServiceID,
		PlanID:       instance.PlanID,
		DashboardURL: instance.DashboardURL,
		Parameters:   parameters,
		Metadata:     a.metadata(instance),
	}}

	if instance.MaintenanceVersion != "" {
		body.MaintenanceInfo = &domain.MaintenanceInfo{Version: instance.MaintenanceVersion}
	}

	return body
}
