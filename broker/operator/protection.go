package operator

import (
	"encoding/json"
	"net/http"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// ProtectInstance protects an instance: the broker then rejects requests to delete it.
func (a *API) ProtectInstance(r *http.Request) (httpserver.Response, error) {
	return a.setProtection(r, auditlog.ActionProtect, true)
}

// UnprotectInstance permits requests to delete an instance again.
func (a *API) UnprotectInstance(r *http.Request) (httpserver.Response, error) {
	return a.setProtection(r, auditlog.ActionUnprotect, false)
}

// setProtection changes the deletion protection of the instance that the request path names. If the instance's stored parameters
// contain deletionProtection, setProtection also updates them, so that platforms read the current value. Each request is logged.
func (a *API) setProtection(r *http.Request, action string, protected bool) (httpserver.Response, error) {
	id, wanted, err := readChange[operatorapi.Justification](r, textJustification)
	if err == nil {
		wanted.Reason, err = operatorserver.CheckReason(wanted.Reason)
	}

	var changed environment.Instance
	if err == nil {
		changed, err = a.changeInstance(r.Context(), id, auditlog.Entry{Action: action, Reason: wanted.Reason}, a.Instances.Update,
			func(instance environment.Instance) (environment.Instance, error) {
				return withProtection(instance, protected)
			})
	}

	line := a.Log.WithFields(logrus.Fields{
		logging.User: auth.FromContext(r.Context()).Name, logging.InstanceID: id, logging.Kind: action, logging.Reason: wanted.Reason,
	})
	if err != nil {
		line.WithError(err).Warn("audit: deletion protection not changed")

		return httpserver.Response{}, err
	}

	line.Info("audit: deletion protection changed")

	return httpserver.OK(operatorapi.InstanceProtection{InstanceID: changed.ID, DeletionProtection: changed.DeletionProtection}), nil
}

// withProtection returns the instance with the given deletion protection. If the stored parameters contain deletionProtection,
// they are updated too.
func withProtection(instance environment.Instance, protected bool) (environment.Instance, error) {
	update := environment.UnchangedUpdate(instance)
	update.DeletionProtection = &protected

	var sent struct {
		DeletionProtection *bool `json:"deletionProtection"`
	}

	// Stored parameters are an object or empty. If they cannot be decoded, they do not contain deletionProtection.
	if json.Unmarshal(instance.Request.Parameters, &sent) == nil && sent.DeletionProtection != nil {
		encoded, err := json.Marshal(map[string]bool{"deletionProtection": protected})
		if err != nil {
			return instance, err
		}

		update.Parameters = encoded
	}

	return update.Apply(instance)
}
