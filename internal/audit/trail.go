package audit

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// refusalRate and refusalBurst bound how many refusals a replica writes down, a second: whoever is refused may come back as often as
	// they like, and the trail is kept for long.
	refusalRate  = 2
	refusalBurst = 100
	// refusalTimeout bounds the writing of one, for which its answer waits.
	refusalTimeout = 2 * time.Second
)

// Store keeps entries.
type Store interface {
	Insert(ctx context.Context, tx storage.Tx, entry Entry) error
}

// Trail is where entries are written.
type Trail struct {
	store Store
	db    *storage.DB
	clock clock.PassiveClock
	log   logrus.FieldLogger
	// strangers are requests that are not let in, changes those that are let in and then refused. The ones do not crowd out the others.
	strangers, changes sampler
}

// NewTrail returns the trail of a service.
func NewTrail(store Store, db *storage.DB, clock clock.PassiveClock, log logrus.FieldLogger) *Trail {
	return &Trail{store: store, db: db, clock: clock, log: log, strangers: newSampler(), changes: newSampler()}
}

// Record writes, in the transaction of a change, who makes it now. Of the entry, who, when and its id are filled in.
func (t *Trail) Record(ctx context.Context, tx storage.Tx, entry Entry) error {
	entry.ID, entry.At, entry.By = uuid.NewString(), t.clock.Now(), ActorOf(ctx)

	if err := t.store.Insert(ctx, tx, entry); err != nil {
		return fmt.Errorf("writing to the audit trail: %w", err)
	}

	return nil
}

// RecordAlone is Record for what changes no row.
func (t *Trail) RecordAlone(ctx context.Context, entry Entry) error {
	return t.Record(ctx, t.db.Writer(), entry)
}

// Target is what a request is about. Without an action it changes nothing.
type Target struct {
	Action, InstanceID, OperationID, BindingID string
}

// Refusals is a middleware that writes down changes that are not carried out, and whoever is not let in: not all of them where there are
// many. It needs Introduce before it.
func (t *Trail) Refusals(of func(*http.Request) Target) httpserver.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, identity := auth.Witness(r.Context())
			answered := &answer{ResponseWriter: w}

			next.ServeHTTP(answered, r.WithContext(ctx))

			target, stranger := of(r), answered.status == http.StatusUnauthorized || answered.status == http.StatusForbidden
			if answered.status < http.StatusBadRequest || target.Action == "" && !stranger {
				return
			}

			if target.Action == "" {
				target.Action = Access
			}

			sampler := &t.changes
			if stranger {
				sampler = &t.strangers
			}

			t.refused(auth.NewContext(ctx, *identity), sampler, Entry{
				Action: target.Action, InstanceID: target.InstanceID, OperationID: target.OperationID, BindingID: target.BindingID,
				Status: answered.status, Code: answered.code(),
			})
		})
	}
}

// Refused writes down a change that is not carried out, of a protocol whose answers Refusals cannot read: not all of them where there are
// many. Who and when are filled in.
func (t *Trail) Refused(ctx context.Context, entry Entry) {
	entry.InstanceID, entry.Code = oneLine(entry.InstanceID), oneLine(entry.Code)
	t.refused(ctx, &t.changes, entry)
}

// refused writes an entry unless there were too many of late. The answer is as it is: where the entry cannot be written, the log says so.
func (t *Trail) refused(ctx context.Context, sampler *sampler, entry Entry) {
	missed, chosen := sampler.take(t.clock.Now())
	if !chosen {
		return
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusalTimeout)
	defer cancel()

	entry.Missed = missed
	if err := t.RecordAlone(ctx, entry); err != nil {
		t.log.WithError(err).WithFields(logrus.Fields{logging.Kind: entry.Action, logging.Status: entry.Status}).
			Warn("audit: a refusal could not be written down")
	}
}

// sampler chooses some of what comes too often, and counts the rest.
type sampler struct {
	limiter *rate.Limiter
	missed  *atomic.Int64
}

func newSampler() sampler {
	return sampler{limiter: rate.NewLimiter(refusalRate, refusalBurst), missed: &atomic.Int64{}}
}

// take tells how many were not chosen before this one.
func (s *sampler) take(now time.Time) (missed int, chosen bool) {
	if !s.limiter.AllowN(now, 1) {
		s.missed.Add(1)

		return 0, false
	}

	return int(s.missed.Swap(0)), true
}
