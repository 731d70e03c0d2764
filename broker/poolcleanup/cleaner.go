package poolcleanup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const (
	// checkEvery is the interval between two runs of the job.
	checkEvery = 5 * time.Minute
	// firstPause is the pause after the first response that does not confirm the cleanup. It doubles up to maxPause.
	firstPause = 5 * time.Minute
	maxPause   = time.Hour

	// reasonConfirmed is the reason for freeing an account, in the audit log.
	reasonConfirmed = "the cleanup hook has confirmed that the account is empty"
	// textNoHook is the error for requests to clean up an account while no hook is configured.
	textNoHook = "The broker has no cleanup hook: APP_ACCOUNT_POOL_CLEANUP_URL is empty."
)

// Hook empties accounts. cleanuphook.Hook implements it.
type Hook interface {
	Clean(ctx context.Context, account accountpool.Account) (accountpool.CleanupState, string, error)
}

// Cleaner cleans up dirty accounts. It is safe for concurrent use. All fields except Hook are required.
type Cleaner struct {
	Pool    accountpool.Pool
	Records accountpool.Cleanups
	// Hook is nil if operators release accounts themselves. Even then, the Cleaner records dirty accounts.
	Hook     Hook
	Recorder interface {
		RecordAlone(ctx context.Context, entry auditlog.Entry) error
	}
	Metrics *Metrics
	Clock   clock.WithTicker
	Log     logrus.FieldLogger
}

// Job returns the job that calls the hook for all dirty accounts that are due.
func (c Cleaner) Job(limit int) jobs.Job {
	return jobs.Job{
		Name: "accounts", Description: "Ask the cleanup hook to empty dirty cloud accounts, and free those that it confirms to be empty.",
		Items: "accounts", Every: checkEvery, Limit: limit, Reason: reasonConfirmed, Due: c.due,
		Protection: "Deletion protection has no effect: no instance uses a dirty account.",
	}
}

// due records the dirty accounts, and returns those that are due. Without a hook, none are due.
func (c Cleaner) due(ctx context.Context) (jobs.Due, error) {
	dirty, err := c.track(ctx)
	if err != nil || c.Hook == nil {
		return jobs.Due{}, err
	}

	records, err := c.Records.Cleanups(ctx)
	if err != nil {
		return jobs.Due{}, err
	}

	var due jobs.Due

	for _, record := range records {
		at := slices.IndexFunc(dirty, func(status accountpool.Status) bool { return status.Name == record.Account })
		if at < 0 || record.NextAt.After(c.Clock.Now()) || dirty[at].Releasable() != nil {
			continue
		}

		due.Items = append(due.Items, jobs.Item{ID: record.Account, Do: func(ctx context.Context, reason string) (bool, error) {
			cleaned, err := c.clean(ctx, dirty[at], record, reason)

			return cleaned.State == accountpool.CleanupClean, failure.While(err, "cleaning up the account %s", record.Account)
		}})
	}

	return due, nil
}

// track records the dirty accounts and returns them.
func (c Cleaner) track(ctx context.Context) ([]accountpool.Status, error) {
	dirty, err := c.Pool.Dirty(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding dirty accounts: %w", err)
	}

	accounts := make([]accountpool.Account, 0, len(dirty))
	for _, status := range dirty {
		accounts = append(accounts, status.Account)
	}

	return dirty, c.Records.Track(ctx, accounts, c.Clock.Now())
}

// Cleanups returns the records of the dirty accounts, keyed by account name.
func (c Cleaner) Cleanups(ctx context.Context) (map[string]accountpool.Cleanup, error) {
	records, err := c.Records.Cleanups(ctx)
	found := make(map[string]accountpool.Cleanup, len(records))

	for _, record := range records {
		found[record.Account] = record
	}

	return found, err
}

// Clean calls the hook for the account now, and frees the account if the hook confirms the cleanup. It returns the updated record.
// The error is of kind failure.NotFound if the pool has no such dirty account, and of kind failure.Conflict if there is no hook, or
// if the account is in use.
func (c Cleaner) Clean(ctx context.Context, name, reason string) (accountpool.Cleanup, error) {
	if c.Hook == nil {
		return accountpool.Cleanup{}, failure.New(failure.Conflict, textNoHook)
	}

	dirty, err := c.track(ctx)
	if err != nil {
		return accountpool.Cleanup{}, err
	}

	records, err := c.Cleanups(ctx)
	if err != nil {
		return accountpool.Cleanup{}, err
	}

	at := slices.IndexFunc(dirty, func(status accountpool.Status) bool { return status.Name == name })
	record, recorded := records[name] // another replica may already have freed the account

	if at < 0 || !recorded {
		return accountpool.Cleanup{}, failure.New(failure.NotFound, "The account pool has no dirty account %q.", name)
	}

	if err := dirty[at].Releasable(); err != nil {
		return accountpool.Cleanup{}, err
	}

	return c.clean(ctx, dirty[at], record, reason)
}

// clean calls the hook, frees the account if the hook confirms the cleanup, and records the result. The error comes from the hook,
// Gardener or the database.
func (c Cleaner) clean(ctx context.Context, status accountpool.Status, record accountpool.Cleanup, reason string) (accountpool.Cleanup, error) {
	state, message, err := c.Hook.Clean(ctx, status.Account)
	if err != nil {
		state, message = accountpool.CleanupUnanswered, failure.Of(err).Text
	}

	if state == accountpool.CleanupClean {
		if err = c.free(ctx, status, reason); err != nil {
			state, message = accountpool.CleanupPending, failure.Of(err).Text
		}
	}

	record.Attempts++
	record.State, record.Message = state, message
	record.NextAt = c.Clock.Now().Add(restclient.RetryAfter(err, pause(record.Attempts)))

	c.Metrics.answered(state)
	c.Log.WithFields(logrus.Fields{"account": status.Name, "state": state}).Info("account pool: cleanup of a dirty account: " + message)

	return record, errors.Join(err, c.Records.Answered(ctx, record))
}

// free frees the account, unless it has changed since the hook was called. The audit log entry is written before the account's label
// changes.
func (c Cleaner) free(ctx context.Context, status accountpool.Status, reason string) error {
	return c.Pool.FreeUnchanged(ctx, status, func(accountpool.Status) error {
		return c.Recorder.RecordAlone(ctx, auditlog.Entry{
			Action: auditlog.ActionRelease, Account: status.Tenant, Status: http.StatusOK, Reason: reason,
			Before: auditlog.Fields{"account": status.Name, "type": status.Type},
		})
	})
}

// pause returns the pause after the attempt with the given number, counted from 1.
func pause(attempt int) time.Duration {
	const doublings = 4 // 80 min, more than maxPause

	return min(firstPause<<min(attempt-1, doublings), maxPause)
}
