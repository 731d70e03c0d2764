package credentials

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// repairID is the ID under which package reports ensures that only one replica checks at a time. The report with this ID stores
	// the progress of the current pass over all runtimes.
	repairID = "service-manager"
	// checkBatch is the maximum number of runtimes in a batch. A batch starts every repairEvery.
	checkBatch  = 25
	repairEvery = 10 * time.Second
	// batchTimeout limits the duration of a batch, in case runtimes are slow. During a batch, no other replica starts one, because
	// it would check the same runtimes. claimMargin is additional time for storing the progress.
	batchTimeout = 3 * time.Minute
	claimMargin  = 30 * time.Second
	// firstRetry is the pause before a failed check is retried. It doubles with each failure, up to Repairer.Interval.
	firstRetry = 5 * time.Minute
	// maxRetries limits the number of stored retries. Other failed checks are repeated in the next pass.
	maxRetries = 1000
)

// Runtimes compares and repairs the Secret of the SAP BTP service operator in runtimes.
type Runtimes interface {
	// RepairServiceManager writes the credentials if the Secret is missing or differs, and reports whether it has written them.
	// It first calls begin, and writes nothing if begin fails.
	RepairServiceManager(ctx context.Context, instance environment.Instance, credentials environment.ServiceManager,
		begin func(context.Context) error) (repaired bool, err error)
}

// Repairer checks the Secret of the SAP BTP service operator in all runtimes whose instances have credentials, and repairs those
// that were changed or deleted. It skips tenants' own clusters, because the Provisioner does not manage them. All fields are
// required.
type Repairer struct {
	DB         Database
	Instances  *instances.Store
	Operations *operations.Store
	Events     *instanceevents.Store
	Reports    Reports
	Runtimes   Runtimes
	Results    *Results
	// Interval is the time between the starts of two passes over all runtimes.
	Interval time.Duration
	Clock    clock.WithTicker
	Log      logrus.FieldLogger
}

// pass is the stored progress of a pass over all runtimes.
type pass struct {
	// After is the ID of the last checked instance, or empty between two passes.
	After string `json:"after,omitempty"`
	// Began is when the newest pass started.
	Began time.Time `json:"began,omitzero"`
	// Retries are the failed checks to repeat, keyed by instance ID.
	Retries map[string]retry `json:"retries,omitempty"`
}

// retry is a failed check that will be repeated.
type retry struct {
	Failures int       `json:"failures"`
	At       time.Time `json:"at"`
}

// Part returns the lifecycle.Part that calls Repair periodically. If Interval is 0, the part does nothing.
func (r Repairer) Part() lifecycle.Part {
	if r.Interval == 0 {
		return lifecycle.Part{Name: "credential repair", Run: func(ctx context.Context) error {
			<-ctx.Done()

			return nil
		}}
	}

	return lifecycle.Periodic{Name: "credential repair", Every: repairEvery, Work: r.Repair, Clock: r.Clock, Log: r.Log}.Part()
}

// Repair checks up to checkBatch runtimes, unless another replica is checking.
func (r Repairer) Repair(ctx context.Context) error {
	now := r.Clock.Now()

	claimed, err := r.Reports.Claim(ctx, repairID, now, now.Add(repairEvery))
	if err != nil || !claimed {
		return err
	}

	var progress pass
	if _, err := r.Reports.Get(ctx, repairID, &progress); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}

	due, moved, err := r.next(ctx, &progress, now)
	if err != nil || len(due) == 0 && !moved {
		return err
	}

	if err := r.Reports.Postpone(ctx, repairID, now.Add(batchTimeout+claimMargin)); err != nil {
		return err
	}

	limited, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()

	outcomes, err := r.checkAll(limited, due, progress.Retries)

	for i, id := range due {
		progress.record(id, outcomes[i], now, r.Interval)
	}

	return errors.Join(err, r.Reports.Save(ctx, repairID, progress, now), r.Reports.Postpone(ctx, repairID, now.Add(repairEvery)))
}

// next returns the instances to check: first those whose retry is due, then the next ones of the pass. moved reports whether the
// pass has advanced.
func (r Repairer) next(ctx context.Context, progress *pass, now time.Time) (due []string, moved bool, err error) {
	for _, id := range slices.Sorted(maps.Keys(progress.Retries)) {
		if len(due) < checkBatch && !progress.Retries[id].At.After(now) {
			due = append(due, id)
		}
	}

	limit := checkBatch - len(due)
	if limit == 0 {
		return due, false, nil // a pass that is due begins with a later batch
	}

	if progress.After == "" {
		if now.Sub(progress.Began) < r.Interval {
			return due, false, nil
		}

		progress.Began = now
	}

	page, err := r.Instances.WithRuntime(ctx, progress.After, limit)
	if err != nil {
		return nil, false, err
	}

	progress.After = ""
	if len(page) == limit {
		progress.After = page[limit-1]
	}

	for _, id := range page {
		if _, waiting := progress.Retries[id]; !waiting {
			due = append(due, id)
		}
	}

	return due, true, nil
}

// outcome is the result of a check.
type outcome int

const (
	settled outcome = iota
	// busy means that the check has to be repeated soon: an unfinished operation of the instance may change the Secret, or the check
	// was interrupted.
	busy
	failed
)

// record stores when the check has to be repeated, if at all.
func (p *pass) record(id string, result outcome, now time.Time, interval time.Duration) {
	former := p.Retries[id]
	delete(p.Retries, id)

	if result == settled || len(p.Retries) >= maxRetries {
		return
	}

	if p.Retries == nil {
		p.Retries = map[string]retry{}
	}

	pause := firstRetry
	if result == failed {
		former.Failures++
		pause = min(firstRetry<<min(former.Failures-1, 10), max(interval, firstRetry)) //nolint:mnd // prevents an overflow
	}

	p.Retries[id] = retry{Failures: former.Failures, At: now.Add(pause)}
}

// checkAll checks the instances, at most concurrency at the same time. It returns database errors; a check that such an error
// prevented counts as busy. retries are the earlier failures.
func (r Repairer) checkAll(ctx context.Context, ids []string, retries map[string]retry) ([]outcome, error) {
	var (
		running  sync.WaitGroup
		outcomes = make([]outcome, len(ids))
		errs     = make([]error, len(ids))
		free     = make(chan struct{}, concurrency)
	)

	for i, id := range ids {
		free <- struct{}{}

		running.Go(func() {
			defer func() { <-free }()

			outcomes[i], errs[i] = r.check(ctx, id, retries[id].Failures > 0)
		})
	}

	running.Wait()

	return outcomes, errors.Join(errs...)
}

// The messages of events. textFinished is for a repair that a later check finds complete, because the replica that began it did
// not record its end. The message therefore does not say who wrote the Secret.
const (
	textRepaired = "the BTP service operator's Secret differed from the instance's credentials and was repaired"
	textFinished = "the BTP service operator's Secret differed from the instance's credentials, and now matches them"
	textCurrent  = "the BTP service operator's Secret matches the instance's credentials"
	textFailed   = "checking the BTP service operator's Secret failed: "
)

// check checks one instance. It records an event if it has repaired the Secret, if the check has failed, or if the previous check
// failed.
func (r Repairer) check(ctx context.Context, id string, failedBefore bool) (outcome, error) {
	past, err := r.Operations.OfInstance(ctx, r.DB.Reader(), id)
	if err != nil || len(environment.Unfinished(past)) > 0 {
		return busy, err
	}

	instance, err := r.Instances.Get(ctx, r.DB.Reader(), id)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return settled, nil
	case err != nil:
		return busy, err
	case instance.RuntimeID == "" || instance.Request.Cluster.ServiceManager == nil:
		return settled, nil
	}

	credentials := *instance.Request.Cluster.ServiceManager
	fields := logrus.Fields{logging.InstanceID: instance.ID, logging.RuntimeID: instance.RuntimeID}

	var beginErr error

	repaired, err := r.Runtimes.RepairServiceManager(ctx, instance, credentials, func(ctx context.Context) error {
		beginErr = r.begin(ctx, id)

		return beginErr
	})

	switch {
	case err != nil && ctx.Err() != nil:
		return busy, nil //nolint:nilerr // the replica is stopping, or the batch has taken too long
	case beginErr != nil:
		return busy, beginErr
	case err != nil:
		r.Results.count(resultFailed)
		r.Log.WithError(err).WithFields(fields).Info("checking the BTP service operator's Secret failed; the check will be repeated")

		return r.record(ctx, id, failed, resultFailed, textFailed+failure.Of(err).Text)
	case repaired:
		r.Results.count(resultRepaired)
		r.Log.WithFields(fields).Warn(textRepaired)

		// An update may have changed the credentials since they were read. The next check follows soon and sees the new credentials.
		return r.record(ctx, id, busy, resultRepaired, textRepaired)
	default:
		r.Results.count(resultCurrent)

		return r.current(ctx, id, failedBefore)
	}
}

// current records an event if the Secret is correct after a failed check, or after a repair whose event was not recorded.
func (r Repairer) current(ctx context.Context, id string, failedBefore bool) (outcome, error) {
	begun, err := r.Events.Begun(ctx, r.DB.Reader(), id, environment.SystemBTPOperator)

	switch {
	case err != nil:
		return busy, err
	case begun:
		return r.record(ctx, id, settled, resultRepaired, textFinished)
	case failedBefore:
		return r.record(ctx, id, settled, resultCurrent, textCurrent)
	default:
		return settled, nil
	}
}

// begin stores the intent to repair the Secret.
func (r Repairer) begin(ctx context.Context, id string) error {
	return r.DB.InTx(ctx, func(tx storage.Tx) error {
		return r.Events.Begin(ctx, tx, id, environment.SystemBTPOperator, r.Clock.Now())
	})
}

// record records an event, removes the intent to repair the Secret, and returns the outcome. After a failed check it keeps the
// intent, because the runtime may still execute a write whose response was lost. If nothing can be recorded, the check is
// repeated.
func (r Repairer) record(ctx context.Context, id string, then outcome, result, message string) (outcome, error) {
	err := r.DB.InTx(ctx, func(tx storage.Tx) error {
		// Events.Record locks the instance. Lock it before the intent, in the same order as a deletion.
		if err := r.Events.Record(ctx, tx, environment.Event{
			InstanceID: id, System: environment.SystemBTPOperator, Result: result, Message: message, LastAt: r.Clock.Now(),
		}); err != nil || result == resultFailed {
			return err
		}

		return r.Events.End(ctx, tx, id, environment.SystemBTPOperator)
	})
	if err != nil {
		return busy, err
	}

	return then, nil
}
