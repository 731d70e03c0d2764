package audit

import (
	"context"
	"encoding/json"
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
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const (
	// refusalRate is how many refusals a replica records per second, refusalBurst how many at once. Refused clients may retry without end,
	// and entries are kept for long.
	refusalRate  = 2
	refusalBurst = 100
	// refusalTimeout bounds recording one refusal. Its response waits for that.
	refusalTimeout = 2 * time.Second
	// maxRefusalBody bounds the part of an error response that is parsed for its code, in bytes. Descriptions and codes are short.
	maxRefusalBody = 2 << 10
)

// Store keeps entries; *auditlog.Store implements it.
type Store interface {
	Insert(ctx context.Context, tx storage.Tx, entry auditlog.Entry) error
}

// Recorder adds entries to the audit log of a service.
type Recorder struct {
	store Store
	db    *storage.DB
	clock clock.PassiveClock
	log   logrus.FieldLogger
	// unauthorized samples requests without valid credentials or role, changes those that failed later. Separate limits keep the first from
	// crowding out the second.
	unauthorized, changes sampler
}

// NewRecorder returns a recorder whose entries the store keeps.
func NewRecorder(store Store, db *storage.DB, clock clock.PassiveClock, log logrus.FieldLogger) *Recorder {
	return &Recorder{store: store, db: db, clock: clock, log: log, unauthorized: newSampler(), changes: newSampler()}
}

// Record adds an entry in the transaction of the change that it describes, so that neither exists without the other. It sets the id, the
// time and the actor of the context.
func (r *Recorder) Record(ctx context.Context, tx storage.Tx, entry auditlog.Entry) error {
	entry.ID, entry.At, entry.By = uuid.NewString(), r.clock.Now(), ActorOf(ctx)

	if err := r.store.Insert(ctx, tx, entry); err != nil {
		return fmt.Errorf("writing to the audit log: %w", err)
	}

	return nil
}

// RecordAlone adds an entry for an action that changes no row, such as issuing a kubeconfig.
func (r *Recorder) RecordAlone(ctx context.Context, entry auditlog.Entry) error {
	return r.Record(ctx, r.db.Writer(), entry)
}

// Target is the object of a request. An empty action marks a request that changes nothing.
type Target struct {
	Action, InstanceID, OperationID, BindingID string
}

// Refusals is a middleware that records rejected changes and all requests without valid credentials or role, sampled under load. The
// function returns the target of a request. Introduce has to run before it.
func (r *Recorder) Refusals(of func(*http.Request) Target) httpserver.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			ctx, identity := auth.CaptureIdentity(request.Context())
			response := &httpserver.ResponseRecorder{ResponseWriter: w, KeepError: maxRefusalBody}

			next.ServeHTTP(response, request.WithContext(ctx))

			target, unauthorized := of(request), response.Status == http.StatusUnauthorized || response.Status == http.StatusForbidden
			if response.Status < http.StatusBadRequest || target.Action == "" && !unauthorized {
				return
			}

			if target.Action == "" {
				target.Action = auditlog.ActionAccess
			}

			sampler := &r.changes
			if unauthorized {
				sampler = &r.unauthorized
			}

			r.refused(auth.NewContext(ctx, *identity), sampler, auditlog.Entry{
				Action: target.Action, InstanceID: target.InstanceID, OperationID: target.OperationID, BindingID: target.BindingID,
				Status: response.Status, Code: codeIn(response.ErrorBody),
			})
		})
	}
}

// Refused records a rejected change of a protocol whose responses Refusals cannot parse, sampled under load.
func (r *Recorder) Refused(ctx context.Context, entry auditlog.Entry) {
	entry.InstanceID, entry.Code = oneLine(entry.InstanceID), oneLine(entry.Code)
	r.refused(ctx, &r.changes, entry)
}

// refused records an entry if the sampler takes it. A failure is only logged: the request is refused either way.
func (r *Recorder) refused(ctx context.Context, sampler *sampler, entry auditlog.Entry) {
	missed, taken := sampler.take(r.clock.Now())
	if !taken {
		return
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusalTimeout)
	defer cancel()

	entry.Missed = missed
	if err := r.RecordAlone(ctx, entry); err != nil {
		r.log.WithError(err).WithFields(logrus.Fields{logging.Kind: entry.Action, logging.Status: entry.Status}).
			Warn("audit: recording a refusal failed")
	}
}

// sampler takes events up to a rate and counts the rest.
type sampler struct {
	limiter *rate.Limiter
	missed  *atomic.Int64
}

func newSampler() sampler {
	return sampler{limiter: rate.NewLimiter(refusalRate, refusalBurst), missed: &atomic.Int64{}}
}

// take reports whether to record an event, and how many were left out since the last one taken.
func (s *sampler) take(now time.Time) (missed int, taken bool) {
	if !s.limiter.AllowN(now, 1) {
		s.missed.Add(1)

		return 0, false
	}

	return int(s.missed.Swap(0)), true
}

// codeIn returns the error code of a response body, or empty.
func codeIn(response []byte) string {
	var body struct {
		Code string `json:"error"`
	}

	if json.Unmarshal(response, &body) != nil {
		return ""
	}

	return oneLine(body.Code)
}
