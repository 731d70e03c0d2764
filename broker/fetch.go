package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// fetchedInstance is the response to a fetch. It adds maintenance_info, which brokerapi's type lacks.
type fetchedInstance struct {
	apiresponses.GetInstanceResponse

	MaintenanceInfo *domain.MaintenanceInfo `json:"maintenance_info,omitempty"`
}

// fetch handles GET /v2/service_instances/{instance_id}. The response shows the stored instance: the values of an update appear
// when its operation has succeeded, and the values of a resumption appear immediately. The response is 404 until the creation has
// succeeded, and 422 with a ConcurrencyError during a deletion.
func (a *api) fetch(r *http.Request) (httpserver.Response, error) {
	id, err := instanceID(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	instance, err := snapshot(r.Context(), a, func(tx storage.Tx) (environment.Instance, error) {
		return a.createdInstance(r.Context(), tx, id)
	})
	if err != nil {
		return httpserver.Response{}, err
	}

	a.notePlan(r.Context(), instance.PlanID)

	return httpserver.OK(a.fetchedInstanceOf(instance)), nil
}

// createdInstance returns the instance if its creation has succeeded. It returns a ConcurrencyError during a
// deletion, and a 404 if the instance does not exist or its creation has not succeeded.
func (a *api) createdInstance(ctx context.Context, tx storage.Tx, id string) (environment.Instance, error) {
	id, err := a.lookupID(ctx, tx, id)
	if err != nil {
		return environment.Instance{}, err
	}

	newest, _, err := a.latest(ctx, tx, id, lifecycleKinds()...)
	if err != nil {
		return environment.Instance{}, err
	}

	if beingDeleted(newest) {
		return environment.Instance{}, concurrent()
	}

	instance, err := a.Instances.Get(ctx, tx, id)
	if errors.Is(err, storage.ErrNotFound) {
		return instance, notFound(textNoInstance)
	}

	if err != nil {
		return instance, err
	}

	creation, _, err := a.latest(ctx, tx, id, environment.KindProvision)
	if err == nil && creation.State != process.Succeeded {
		err = notFound(textNotReady)
	}

	return instance, err
}

// fetchedInstanceOf converts an instance for the platform. The parameters are those that users sent, without
// defaults and without secrets.
func (a *api) fetchedInstanceOf(instance environment.Instance) fetchedInstance {
	parameters := catalog.WithoutSecrets(instance.Request.Parameters)
	if parameters == nil {
		parameters = json.RawMessage(`{}`)
	}

	body := fetchedInstance{GetInstanceResponse: apiresponses.GetInstanceResponse{
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

// metadata returns the labels that platforms show next to the dashboard link.
func (a *api) metadata(instance environment.Instance) domain.InstanceMetadata {
	labels := map[string]string{"Name": instance.Name}

	if a.PublicURL != "" && instance.Request.Cluster.Own == nil && !instance.Suspended && !instance.Expired() {
		labels["KubeconfigURL"] = strings.TrimSuffix(a.PublicURL, "/") + "/kubeconfig/" + url.PathEscape(instance.ID)
	}

	if text := expirationText(instance, a.Clock.Now()); text != "" {
		labels[expirationLabel(instance.PlanName)] = text
	}

	return domain.InstanceMetadata{Labels: labels}
}

// expirationLabel returns the name of the label that contains the expiration text. The names for the trial and free
// plans come from Kyma Environment Broker, because user interfaces look for them.
func expirationLabel(plan string) string {
	switch plan {
	case "trial":
		return "Trial account expiration details"
	case "free":
		return "Free plan expiration details"
	default:
		return "Expiration details"
	}
}

// expirationText describes for users when the instance expires. It is empty for instances that never expire.
func expirationText(instance environment.Instance, now time.Time) string {
	const day = 24 * time.Hour

	switch days := int(instance.ExpiresAt.Sub(now) / day); {
	case instance.Expired():
		return "Your cluster has expired and is no longer available. You can only delete the instance."
	case instance.ExpiresAt.IsZero():
		return ""
	case !instance.ExpiresAt.After(now.Add(day)):
		return "Your cluster expires within a day."
	case days == 1:
		return "Your cluster expires in 1 day."
	default:
		return fmt.Sprintf("Your cluster expires in %d days.", days)
	}
}
