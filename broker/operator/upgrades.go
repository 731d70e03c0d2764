package operator

import (
	"cmp"
	"net/http"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
)

const textUpgrade = `The body is invalid. Send {"version": "…", "dryRun": false} as JSON. Both fields are optional.`

// UpgradeKyma starts an upgrade of Kyma on an instance's runtime.
func (a *API) UpgradeKyma(r *http.Request) (httpserver.Response, error) {
	return a.upgrade(r, environment.KindUpgradeKyma)
}

// UpgradeCluster starts an upgrade of an instance's cluster.
func (a *API) UpgradeCluster(r *http.Request) (httpserver.Response, error) {
	return a.upgrade(r, environment.KindUpgradeCluster)
}

// upgrade starts an upgrade of the given kind. A dry run also starts an operation. The response contains the ID of the operation.
// The audit log and the broker's log contain the name of the user.
func (a *API) upgrade(r *http.Request, kind string) (httpserver.Response, error) {
	id, wanted, err := readChange[operatorapi.Upgrade](r, textUpgrade)
	if err != nil {
		return httpserver.Response{}, err
	}

	line := a.Log.WithFields(logrus.Fields{
		logging.User: cmp.Or(auth.FromContext(r.Context()).Name, operatorserver.Anonymous), logging.InstanceID: id, logging.Kind: kind,
	})

	accepted, err := a.Upgrader.Upgrade(r.Context(), upgrade.Order{InstanceID: id, Kind: kind, Version: wanted.Version, DryRun: wanted.DryRun})
	if err != nil {
		line.WithError(err).Warn("audit: instance not upgraded")

		return httpserver.Response{}, err
	}

	line.WithField(logging.OperationID, accepted.OperationID).Info("audit: upgrade of an instance accepted")
	httpserver.Note(r.Context(), logging.OperationID, accepted.OperationID)

	return httpserver.Response{Status: http.StatusAccepted, Body: operatorapi.AcceptedUpgrade{
		Operation: accepted.OperationID, DryRun: wanted.DryRun, From: accepted.From, To: accepted.To, Components: accepted.Components,
		Steps: a.UpgradeSteps(kind, accepted.Instance),
	}}, nil
}
