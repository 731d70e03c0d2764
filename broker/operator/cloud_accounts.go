package operator

import (
	"cmp"
	"context"
	"net/http"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const textNoPool = "The broker has no account pool: APP_ACCOUNT_POOL_RULES_FILE is empty."

// AccountPool shows, cleans up and releases the accounts of cloud providers. accountpool.Pool and poolcleanup.Cleaner implement it
// together. Errors carry a failure.Kind.
type AccountPool interface {
	Overview(ctx context.Context) ([]accountpool.Status, error)
	// Free makes a dirty account free if allow returns nil. It returns the status before the change.
	Free(ctx context.Context, name string, allow func(accountpool.Status) error) (accountpool.Status, error)
	// Cleanups returns the cleanup records of the dirty accounts, keyed by account name. Clean calls the cleanup hook for the named
	// account.
	Cleanups(ctx context.Context) (map[string]accountpool.Cleanup, error)
	Clean(ctx context.Context, name, reason string) (accountpool.Cleanup, error)
}

// ListCloudAccounts returns the accounts of the pool. Dirty accounts include their cleanup records.
func (a *API) ListCloudAccounts(r *http.Request) (httpserver.Response, error) {
	if a.Pool == nil {
		return httpserver.Response{}, operatorserver.Conflict(textNoPool)
	}

	all, err := a.Pool.Overview(r.Context())
	if err != nil {
		return httpserver.Response{}, err
	}

	records, err := a.Pool.Cleanups(r.Context())
	list := operatorapi.CloudAccountList{Data: make([]operatorapi.CloudAccount, 0, len(all))}

	for _, status := range all {
		account := cloudAccount(status)
		if record, known := records[status.Name]; known && status.State == accountpool.Dirty {
			account.Cleanup = cloudAccountCleanup(record)
		}

		list.Data = append(list.Data, account)
	}

	return httpserver.OK(list), err
}

func cloudAccount(status accountpool.Status) operatorapi.CloudAccount {
	return operatorapi.CloudAccount{
		Name: status.Name, Type: status.Type, State: operatorapi.CloudAccountState(status.State), Meaning: status.Explain(),
		Tenant: status.Tenant, EUAccess: status.EUAccess, Instances: status.Instances, Shoots: status.Shoots,
	}
}

func cloudAccountCleanup(record accountpool.Cleanup) operatorapi.CloudAccountCleanup {
	return operatorapi.CloudAccountCleanup{
		Account: record.Account, DirtySince: record.DirtySince, Attempts: record.Attempts,
		State: operatorapi.CloudAccountCleanupState(record.State), Message: record.Message, NextAttemptAt: record.NextAt,
	}
}

// CleanCloudAccount calls the cleanup hook for a dirty account. If the hook confirms that the account is empty, the account
// becomes free.
func (a *API) CleanCloudAccount(r *http.Request) (httpserver.Response, error) {
	name, wanted, err := a.justifiedAccount(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	line := a.Log.WithFields(logrus.Fields{
		logging.User: cmp.Or(auth.FromContext(r.Context()).Name, operatorserver.Anonymous), "account": name, logging.Reason: wanted.Reason,
	})

	record, err := a.Pool.Clean(r.Context(), name, wanted.Reason)
	if err != nil {
		line.WithError(err).Warn("audit: account not cleaned up")

		return httpserver.Response{}, err
	}

	line.WithField("state", record.State).Info("audit: account cleanup")

	return httpserver.OK(cloudAccountCleanup(record)), nil
}

// justifiedAccount returns the account and the reason in a request. It returns an error if the broker has no account pool.
func (a *API) justifiedAccount(r *http.Request) (name string, wanted operatorapi.Justification, err error) {
	if name, err = operatorserver.Segment(r, "cloud_account"); err != nil {
		return "", wanted, err
	}

	if err = operatorserver.ReadStrictly(r.Body, &wanted, textJustification); err != nil {
		return "", wanted, err
	}

	if wanted.Reason, err = operatorserver.CheckReason(wanted.Reason); err == nil && a.Pool == nil {
		err = operatorserver.Conflict(textNoPool)
	}

	return name, wanted, err
}

// ReleaseCloudAccount makes a dirty account free. It writes the audit log entry before it changes the label of the account.
func (a *API) ReleaseCloudAccount(r *http.Request) (httpserver.Response, error) {
	name, wanted, err := a.justifiedAccount(r)
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
