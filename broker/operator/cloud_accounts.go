package operator

import (
	"cmp"
	"context"
	"net/http"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/accountpool"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const textNoPool = "The broker has no account pool: APP_ACCOUNT_POOL_RULES_FILE is empty."

// AccountPool shows and releases the accounts of cloud providers. accountpool.Pool implements it. Errors are of package failure.
type AccountPool interface {
	Overview(ctx context.Context) ([]accountpool.Status, error)
	// Free makes a dirty account free if allow returns nil, and returns the status before.
	Free(ctx context.Context, name string, allow func(accountpool.Status) error) (accountpool.Status, error)
}

// ListCloudAccounts returns the accounts of the pool.
func (a *api) ListCloudAccounts(r *http.Request) (httpserver.Response, error) {
	if a.Pool == nil {
		return httpserver.Response{}, operatorserver.Conflict(textNoPool)
	}

	all, err := a.Pool.Overview(r.Context())
	list := operatorapi.CloudAccountList{Data: make([]operatorapi.CloudAccount, 0, len(all))}

	for _, status := range all {
		list.Data = append(list.Data, cloudAccount(status))
	}

	return httpserver.OK(list), err
}

func cloudAccount(status accountpool.Status) operatorapi.CloudAccount {
	return operatorapi.CloudAccount{
		Name: status.Name, Type: status.Type, State: operatorapi.CloudAccountState(status.State), Meaning: status.Explain(),
		Tenant: status.Tenant, EUAccess: status.EUAccess, Instances: status.Instances, Shoots: status.Shoots,
	}
}

// ReleaseCloudAccount makes a dirty account free. The entry in the audit log is written before the label changes.
func (a *api) ReleaseCloudAccount(r *http.Request) (httpserver.Response, error) {
	var wanted operatorapi.Justification

	name, err := operatorserver.Segment(r, "cloud_account")
	if err == nil {
		err = operatorserver.ReadStrictly(r.Body, &wanted, textJustification)
	}

	if err == nil {
		wanted.Reason, err = operatorserver.CheckReason(wanted.Reason)
	}

	if err == nil && a.Pool == nil {
		err = operatorserver.Conflict(textNoPool)
	}

	line := a.Log.WithFields(logrus.Fields{
		logging.User: cmp.Or(auth.FromContext(r.Context()).Name, operatorserver.Anonymous), "account": name, logging.Reason: wanted.Reason,
	})

	var freed accountpool.Status
	if err == nil {
		freed, err = a.Pool.Free(r.Context(), name, func(status accountpool.Status) error {
			return a.Recorder.RecordAlone(r.Context(), auditlog.Entry{
				Action: auditlog.ActionRelease, Account: status.Tenant, Status: http.StatusOK, Reason: wanted.Reason,
				Before: auditlog.Fields{"account": status.Name, "type": status.Type},
			})
		})
	}

	if err != nil {
		line.WithError(err).Warn("audit: account not released")

		return httpserver.Response{}, err
	}

	line.Info("audit: account released")

	return httpserver.OK(cloudAccount(freed)), nil
}
