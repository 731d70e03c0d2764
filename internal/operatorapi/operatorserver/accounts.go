package operatorserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const (
	// The maximum numbers of rows that one request erases, in one transaction. Clients repeat the request until the account is
	// erased.
	eraseOperations   = 100
	eraseAuditEntries = 1000
	eraseRuntimes     = 100
	// maxRemaining is the maximum number of objects that a response lists as reasons why an account cannot be erased.
	maxRemaining = 20
)

// Accounts reads and erases the account data that the two services store differently: instances in the broker, runtimes in the
// Provisioner. API itself handles operations and audit log entries.
type Accounts interface {
	// Key returns the form of the account's ID that the service stores.
	Key(account string) string
	// Remaining returns at most limit instances of the account that still exist or have leftovers.
	Remaining(ctx context.Context, tx storage.Tx, account string, limit int) ([]operatorapi.AccountInstance, error)
	// CountErasable counts the account's rows that Erase can remove.
	CountErasable(ctx context.Context, account string) (ErasableRows, error)
	// Erase removes the account's rows and returns how many rows of each kind it removed. In the Provisioner, it removes the rows
	// of at most limit deleted runtimes. In the broker, it removes all events and all records of objects in other systems.
	Erase(ctx context.Context, tx storage.Tx, account string, limit int) (ErasableRows, error)
}

// ErasableRows counts rows that belong to deleted instances. The Provisioner counts runtimes. The broker counts events, and
// records of objects in other systems.
type ErasableRows struct{ Runtimes, OutsideObjects, Events int }

// GetAccount handles GET /accounts/{account_id}. It counts the rows that an erasure would change.
func (a *API) GetAccount(r *http.Request) (httpserver.Response, error) {
	account, err := Segment(r, "account_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	ctx, key := r.Context(), a.Accounts.Key(account)
	shown := operatorapi.Account{AccountID: account}

	blocked, err := a.blockers(ctx, a.DB.Reader(), account)
	if err != nil {
		return httpserver.Response{}, err
	}

	shown.Instances, shown.UnfinishedOperations = blocked.instances, blocked.operations

	counts, err := a.Operations.CountErasable(ctx, key)
	if err != nil {
		return httpserver.Response{}, err
	}

	shown.Operations, shown.TimelineEntries = counts.Operations, counts.TimelineEntries

	if shown.AuditEntries, err = a.Entries.CountErasable(ctx, key); err != nil {
		return httpserver.Response{}, err
	}

	rows, err := a.Accounts.CountErasable(ctx, account)
	if err != nil {
		return httpserver.Response{}, err
	}

	shown.Runtimes, shown.OutsideObjects, shown.Events = rows.Runtimes, rows.OutsideObjects, rows.Events

	return httpserver.OK(shown), nil
}

// EraseAccount handles POST /accounts/{account_id}/erase. Each request erases a limited number of rows in one transaction and
// adds an entry with the counts to the audit log. An interrupted request has erased its whole batch or nothing.
//
// An operation that is accepted after the check for blockers is not erased, because only operations that have ended are erased.
func (a *API) EraseAccount(r *http.Request) (httpserver.Response, error) {
	account, err := Segment(r, "account_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	line := a.Log.WithFields(logrus.Fields{logging.User: auth.FromContext(r.Context()).Name, logging.Tenant: account})

	var erased operatorapi.Erasure

	err = a.DB.InTx(r.Context(), func(tx storage.Tx) error {
		blocked, err := a.blockers(r.Context(), tx, account)
		if err == nil {
			err = blocked.refusal(a.Subjects.Noun())
		}

		if err == nil {
			erased, err = a.erase(r.Context(), tx, account)
		}

		return err
	})
	if err != nil {
		line.WithError(err).Warn("audit: account not erased")

		return httpserver.Response{}, err
	}

	line.WithField("rows", erased.Operations+erased.TimelineEntries+erased.AuditEntries+erased.Runtimes+erased.OutsideObjects+erased.Events).
		Info("audit: account erased")

	return httpserver.OK(erased), nil
}

// erase erases at most one batch of the account's rows.
func (a *API) erase(ctx context.Context, tx storage.Tx, account string) (operatorapi.Erasure, error) {
	key := a.Accounts.Key(account)
	erased := operatorapi.Erasure{AccountID: account, EntryID: uuid.NewString()}

	ended, err := a.Operations.Erasable(ctx, tx, key, eraseOperations)
	if err != nil {
		return erased, err
	}

	entries, err := a.Entries.Erasable(ctx, tx, key, eraseAuditEntries)
	if err != nil {
		return erased, err
	}

	rows, err := a.Accounts.Erase(ctx, tx, account, eraseRuntimes)
	if err != nil {
		return erased, err
	}

	erased.Runtimes, erased.OutsideObjects, erased.Events = rows.Runtimes, rows.OutsideObjects, rows.Events

	if erased.TimelineEntries, err = a.Operations.EraseTimelines(ctx, tx, ended); err != nil {
		return erased, err
	}

	erased.Operations, erased.AuditEntries = len(ended), len(entries)
	erased.Complete = erased.Operations < eraseOperations && erased.AuditEntries < eraseAuditEntries && erased.Runtimes < eraseRuntimes

	if erased.Operations+erased.AuditEntries+erased.Runtimes+erased.OutsideObjects+erased.Events == 0 {
		return a.nothingToErase(ctx, tx, account)
	}

	// Write the entry before the changes, because the database rejects an erasure without an entry.
	if err := a.Recorder.Record(ctx, tx, auditlog.Entry{
		ID: erased.EntryID, Action: auditlog.ActionErase, Account: key, Status: http.StatusOK,
		After: auditlog.Fields{
			"operations": erased.Operations, "timelineEntries": erased.TimelineEntries,
			"auditEntries": erased.AuditEntries, "runtimes": erased.Runtimes, "outsideObjects": erased.OutsideObjects, "events": erased.Events,
		},
	}); err != nil {
		return erased, err
	}

	if err := a.Operations.Erase(ctx, tx, ended, erased.EntryID, a.Clock.Now()); err != nil {
		return erased, err
	}

	return erased, a.Entries.Erase(ctx, tx, entries, erased.EntryID)
}

// nothingToErase returns the response for an account without rows. It is 200 if an earlier request has erased them, so that
// clients can safely repeat requests, and otherwise 404, because the ID may be misspelled.
func (a *API) nothingToErase(ctx context.Context, tx storage.Tx, account string) (operatorapi.Erasure, error) {
	before, err := a.Entries.Erased(ctx, tx, a.Accounts.Key(account))
	if err == nil && !before {
		err = NotFound(fmt.Sprintf("There is no data for account %q. Check the ID.", account))
	}

	return operatorapi.Erasure{AccountID: account, Complete: true}, err
}

// blockers are the objects that prevent the erasure of an account.
type blockers struct {
	instances  []operatorapi.AccountInstance
	operations []operatorapi.AccountOperation
}

// blockers returns the instances and the unfinished operations of the account, at most maxRemaining+1 of each. The additional
// object shows that the response cannot list all of them.
func (a *API) blockers(ctx context.Context, tx storage.Tx, account string) (blockers, error) {
	var err error

	found := blockers{operations: []operatorapi.AccountOperation{}}

	if found.instances, err = a.Accounts.Remaining(ctx, tx, account, maxRemaining+1); err != nil {
		return found, err
	}

	unfinished, err := a.Operations.Unfinished(ctx, tx, a.Accounts.Key(account), maxRemaining+1)
	for _, record := range unfinished {
		instanceID, _ := a.Subjects.IDs(record)
		found.operations = append(found.operations, operatorapi.AccountOperation{
			ID: record.ID, Kind: record.Kind, InstanceID: instanceID, State: operatorapi.OperationState(record.State),
		})
	}

	return found, err
}

// refusal returns the error for an account that cannot be erased yet, or nil if there are no blockers.
func (b blockers) refusal(noun string) error {
	texts, leftovers := []string{}, []string{}

	for _, instance := range b.instances {
		if instance.LeftoverID != "" {
			leftovers = append(leftovers, instance.LeftoverID)
		} else {
			texts = append(texts, fmt.Sprintf("%s (%s)", instance.Name, instance.InstanceID))
		}
	}

	if len(texts) > 0 {
		return Conflict(fmt.Sprintf("The account still has %ss: %s. Delete them first.", noun, enumerate(texts)))
	}

	if len(leftovers) > 0 {
		return Conflict(fmt.Sprintf("The account has leftovers from deletions: %s. Clean them up first, "+
			"or confirm that nothing is left: ebctl instance list --leftovers.", enumerate(leftovers)))
	}

	for _, operation := range b.operations {
		texts = append(texts, fmt.Sprintf("%s %s of %s %s", operation.Kind, operation.ID, noun, operation.InstanceID))
	}

	if len(texts) > 0 {
		return Conflict(fmt.Sprintf("The account still has unfinished operations: %s. Wait until they have ended, or cancel them.", enumerate(texts)))
	}

	return nil
}

// enumerate joins the first maxRemaining strings, and adds "and more" if there are others.
func enumerate(texts []string) string {
	if len(texts) <= maxRemaining {
		return strings.Join(texts, ", ")
	}

	return strings.Join(texts[:maxRemaining], ", ") + " and more"
}
