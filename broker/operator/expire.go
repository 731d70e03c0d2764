package operator

import (
	"cmp"
	"net/http"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// expire answers PUT /expire/service_instance/{instance_id}. Who asked is in the timeline of the operation, and in the log in every case.
func (a *api) expire(r *http.Request) (httpserver.Answer, error) {
	id, err := segment(r, "instance_id")
	if err != nil {
		return httpserver.Answer{}, err
	}

	by := cmp.Or(auth.FromContext(r.Context()).Name, nobody)
	audit := a.Log.WithFields(logrus.Fields{logging.User: by, logging.InstanceID: id})

	httpserver.Note(r.Context(), logging.InstanceID, id)

	operation, err := a.Expirer.Expire(r.Context(), id, "the instance was made to expire by "+by)
	if err != nil {
		audit.WithError(err).Warn("audit: instance not made to expire")

		return httpserver.Answer{}, err
	}

	audit.WithField(logging.OperationID, operation).Info("audit: instance made to expire")

	answer := httpserver.OK(operatorapi.Expiration{Operation: operation})
	if operation != "" {
		answer.Status = http.StatusAccepted
		httpserver.Note(r.Context(), logging.OperationID, operation)
	}

	return answer, nil
}
