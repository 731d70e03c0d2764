package operator

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const (
	textRenewal       = `The body is invalid. Send {"reason": "…"} or {"dryRun": true} as JSON.`
	textNoCredentials = "No other system has a kubeconfig for the runtime."

	// maxCredentials is the maximum number of kubeconfigs that are read for an instance. Each other system stores at most one
	// kubeconfig of an instance.
	maxCredentials = 10
)

// ListCredentials returns a page of the runtime kubeconfigs that other systems store, without their contents.
func (a *API) ListCredentials(r *http.Request, query operatorserver.Query) (httpserver.Response, error) {
	found, err := a.Objects.Credentials(r.Context(), query.Get("instance_id"), credentialAt(query.Page.BeforeID), query.Page.Size+1)
	if err != nil {
		return httpserver.Response{}, err
	}

	list := operatorapi.CredentialList{Data: []operatorapi.Credential{}}

	if len(found) > query.Page.Size {
		found = found[:query.Page.Size]
		last := found[len(found)-1]
		list.Cursor = storage.Cursor{ID: last.System + "/" + last.InstanceID}.String()
	}

	for _, object := range found {
		list.Data = append(list.Data, shownCredential(object))
	}

	list.Count = len(list.Data)

	return httpserver.OK(list), nil
}

// credentialAt parses a cursor position of the form system/instanceID.
func credentialAt(position string) environment.OutsideObject {
	system, instanceID, _ := strings.Cut(position, "/")

	return environment.OutsideObject{InstanceID: instanceID, System: system}
}

func shownCredential(object environment.OutsideObject) operatorapi.Credential {
	return operatorapi.Credential{
		InstanceID: object.InstanceID, System: object.System, Name: object.Key, IssuedAt: object.Credential.IssuedAt,
		ValidUntil: object.Credential.ExpiresAt, RenewAt: object.Credential.RenewAt, Problem: object.Credential.Problem,
	}
}

// RenewCredentials makes the broker renew an instance's kubeconfigs in other systems as soon as possible. Requests and errors are
// logged; successful dry runs are not.
func (a *API) RenewCredentials(r *http.Request) (httpserver.Response, error) {
	id, err := operatorserver.Segment(r, "instance_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	httpserver.Note(r.Context(), logging.InstanceID, id)

	var wanted operatorapi.CredentialRenewal
	if err := operatorserver.ReadStrictly(r.Body, &wanted, textRenewal); err != nil {
		return httpserver.Response{}, err
	}

	if !wanted.DryRun {
		if wanted.Reason, err = operatorserver.CheckReason(wanted.Reason); err != nil {
			return httpserver.Response{}, err
		}
	}

	line := a.Log.WithFields(logrus.Fields{
		logging.User: cmp.Or(auth.FromContext(r.Context()).Name, operatorserver.Anonymous), logging.InstanceID: id, logging.Reason: wanted.Reason,
	})

	renewals, err := a.renewals(r.Context(), id)
	if err == nil && !wanted.DryRun {
		err = a.requestRenewal(r.Context(), id, wanted.Reason)
	}

	if err != nil {
		line.WithError(err).Warn("audit: renewal of credentials not requested")

		return httpserver.Response{}, err
	}

	if !wanted.DryRun {
		line.Info("audit: renewal of credentials requested")
	}

	return httpserver.Response{Status: http.StatusAccepted, Body: operatorapi.CredentialRenewals{DryRun: wanted.DryRun, Data: renewals}}, nil
}

// renewals returns the instance's kubeconfigs in other systems. If something currently prevents the renewal of a kubeconfig, its
// Obstacle says what.
func (a *API) renewals(ctx context.Context, id string) ([]operatorapi.Credential, error) {
	if _, err := a.Instances.Get(ctx, a.DB.Reader(), id); errors.Is(err, storage.ErrNotFound) {
		return nil, operatorserver.NotFound(textNoInstance)
	} else if err != nil {
		return nil, err
	}

	found, err := a.Objects.Credentials(ctx, id, environment.OutsideObject{}, maxCredentials)
	if err != nil {
		return nil, err
	}

	if len(found) == 0 {
		return nil, operatorserver.Conflict(textNoCredentials)
	}

	past, err := a.Operations.OfInstance(ctx, a.DB.Reader(), id)
	if err != nil {
		return nil, err
	}

	shown := make([]operatorapi.Credential, 0, len(found))

	for _, object := range found {
		credential, unfinished := shownCredential(object), environment.Unfinished(past)

		switch {
		case !slices.Contains(a.Renewed, object.System):
			credential.Obstacle = notConnected(object.System)
		case object.System == environment.SystemReconciler && len(unfinished) > 0:
			credential.Obstacle = "The renewal waits for operation " + unfinished[0].ID + " to end."
		case object.Credential.RenewingUntil.After(a.Clock.Now()):
			credential.Obstacle = "A renewal is in progress."
		}

		shown = append(shown, credential)
	}

	return shown, nil
}

// notConnected returns the text for a system to which the broker is not connected. For known systems, it names the environment
// variable to set.
func notConnected(system string) string {
	switch system {
	case environment.SystemLifecycleManager:
		return "The broker is not connected to Lifecycle Manager: set APP_LIFECYCLE_MANAGER_ENABLED."
	case environment.SystemReconciler:
		return "The broker is not connected to the Reconciler: set APP_RECONCILER_URL."
	default:
		return "The broker is not connected to " + system + "."
	}
}

// requestRenewal makes the renewals of an instance's kubeconfigs due, and records the request in the audit log, in one
// transaction.
func (a *API) requestRenewal(ctx context.Context, id, reason string) error {
	return a.DB.InTx(ctx, func(tx storage.Tx) error {
		systems := []string{environment.SystemLifecycleManager, environment.SystemReconciler}
		if err := a.Objects.RequestRenewal(ctx, tx, id, systems, a.Clock.Now()); err != nil {
			return err
		}

		return a.Recorder.Record(ctx, tx, auditlog.Entry{Action: auditlog.ActionRenew, InstanceID: id, Status: http.StatusAccepted, Reason: reason})
	})
}
