package accountpool

import (
	"context"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// CleanupState is the result of calling the cleanup hook for an account.
type CleanupState string

// The states of a cleanup.
const (
	// CleanupClean: the account is empty.
	CleanupClean CleanupState = "clean"
	// CleanupPending: the hook is still emptying the account.
	CleanupPending CleanupState = "pending"
	// CleanupFailed: the hook cannot empty the account.
	CleanupFailed CleanupState = "failed"
	// CleanupUnanswered: the hook has not responded.
	CleanupUnanswered CleanupState = "unanswered"
)

// Cleanup records the progress of emptying a dirty account.
type Cleanup struct {
	Account, Type string
	// DirtySince is when the broker first saw that the account is dirty.
	DirtySince time.Time
	// Attempts is the number of calls to the hook. State and Message are the last result; they are empty before the first call.
	Attempts int
	State    CleanupState
	Message  string
	// NextAt is the earliest time of the next call to the hook.
	NextAt time.Time
}

// Cleanups stores the records of dirty accounts.
type Cleanups interface {
	// Track adds a record for each given account that has no record yet, and removes the records of all accounts that are not
	// given.
	Track(ctx context.Context, dirty []Account, now time.Time) error
	// Cleanups returns the records in the order in which they are due, earliest first.
	Cleanups(ctx context.Context) ([]Cleanup, error)
	// Answered stores the result of a call to the cleanup hook. It does nothing if the account has no record.
	Answered(ctx context.Context, cleanup Cleanup) error
}

// Dirty returns the statuses of all dirty accounts.
func (p Pool) Dirty(ctx context.Context) ([]Status, error) {
	accounts, err := p.Garden.Accounts(ctx, "")
	if err != nil || !slices.ContainsFunc(accounts, func(account Account) bool { return account.Dirty }) {
		return nil, err
	}

	all, err := p.Overview(ctx)

	return slices.DeleteFunc(all, func(status Status) bool { return status.State != Dirty }), err
}

// FreeUnchanged is like Free, but for an account that the cleanup hook has confirmed to be empty. confirmed is the status of the
// account at that time. The error is of kind Conflict if the account has changed since then, or if something uses it now.
func (p Pool) FreeUnchanged(ctx context.Context, confirmed Status, allow func(Status) error) error {
	_, err := p.Free(ctx, confirmed.Name, func(status Status) error {
		if status.Version != confirmed.Version {
			return failure.New(failure.Conflict, "The account %q has changed since it was confirmed to be empty.", confirmed.Name)
		}

		return allow(status)
	})

	return err
}

// Releasable returns nil if the account is dirty and nothing uses it. Otherwise, it returns an error of kind Conflict.
func (s Status) Releasable() error { return s.releasable() }
