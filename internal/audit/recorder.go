package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const (
	// refusalRate is the number of rejected requests that a replica records per second for one user and action; refusalBurst is
	// the size of a burst. Entries are kept for more than a year, so a client that retries forever would otherwise fill the
	// database.
	refusalRate  = 0.5
	refusalBurst = 100
	// maxSamplers is the maximum number of user-action pairs that are sampled separately.
	maxSamplers = 10_000
	// refusalTimeout is the time limit for recording one rejected request. The response is not complete until the request is
	// recorded or the limit is reached.
	refusalTimeout = 2 * time.Second
	// maxRefusalBody is the number of bytes of an error response that Refusals parses for the error code. Complete error
	// responses are shorter.
	maxRefusalBody = 2 << 10
)

// Store stores entries; *auditlog.Store implements it.
type Store interface {
	Insert(ctx context.Context, tx storage.Tx, entry auditlog.Entry) error
}

// Recorder adds entries to the audit log of a service. It is safe for concurrent use.
type Recorder struct {
	store Store
	db    *storage.DB
	clock clock.PassiveClock
	log   logrus.FieldLogger
	// unauthorized is for requests of clients without valid credentials or without the required role; changes is for rejected
	// changes by authorized clients. If both shared samplers, an attacker without credentials could crowd out the entries about
	// authorized clients.
	unauthorized, changes samplers
}

// NewRecorder returns a recorder that adds entries to the store.
func NewRecorder(store Store, db *storage.DB, clock clock.PassiveClock, log logrus.FieldLogger) *Recorder {
	return &Recorder{store: store, db: db, clock: clock, log: log, unauthorized: newSamplers(), changes: newSamplers()}
}

// Record adds an entry in the transaction of the change that the entry describes, so neither exists without the other. Record
// sets the time and the actor of the entry, and the ID if it is empty; the caller sets the other fields. If Record fails, the
// caller must roll back the transaction.
func (r *Recorder) Record(ctx context.Context, tx storage.Tx, entry auditlog.Entry) error {
	entry.ID, entry.At, entry.By = cmp.Or(entry.ID, uuid.NewString()), r.clock.Now(), ActorOf(ctx)

	return failure.While(r.store.Insert(ctx, tx, entry), "writing to the audit log")
}

// RecordAlone adds an entry for an action that changes no row, such as issuing a kubeconfig. If RecordAlone fails, the caller
// must not carry out the action.
func (r *Recorder) RecordAlone(ctx context.Context, entry auditlog.Entry) error {
	return r.Record(ctx, r.db.Writer(), entry)
}

// Target describes a request: its action and the IDs in its path. An empty Action means that the request changes nothing.
type Target struct {
	Action, InstanceID, OperationID, BindingID string
	// Account is the ID of the account. It is empty if one of the other IDs identifies the account.
	Account string
}

type markKey struct{}

// Mark makes Refusals record the current request if it is rejected, even if it would have changed nothing. If code is not empty,
// the entry contains it instead of the error code in the response.
func Mark(ctx context.Context, code string) {
	if mark, inside := ctx.Value(markKey{}).(*mark); inside {
		mark.made, mark.code = true, code
	}
}

// mark contains the values that Mark has set.
type mark struct {
	made bool
	code string
}

// Refusals returns a middleware that records rejected changes, rejected requests that Mark has marked, and all requests of
// clients without valid credentials or without the required role. Under load, it records only a sample. targetOf returns the
// target of a request. The middleware must run inside Introduce and outside of the Authorizer.
func (r *Recorder) Refusals(targetOf func(*http.Request) Target) httpserver.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			ctx, identity := auth.CaptureIdentity(request.Context())
			ctx, account := captureAccount(ctx)
			marked := &mark{}
			ctx = context.WithValue(ctx, markKey{}, marked)
			response := &httpserver.ResponseRecorder{ResponseWriter: w, KeepError: maxRefusalBody}

			next.ServeHTTP(response, request.WithContext(ctx))

			target, unauthorized := targetOf(request), response.Status == http.StatusUnauthorized || response.Status == http.StatusForbidden
			if response.Status < http.StatusBadRequest || target.Action == "" && !unauthorized && !marked.made {
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
				Status: response.Status, Code: cmp.Or(marked.code, codeIn(response.ErrorBody)), Account: cmp.Or(target.Account, *account),
			})
		})
	}
}

// Refused records a rejected change. Under load, it records only a sample of the rejected changes. Use it for protocols such as
// GraphQL, whose error responses Refusals does not recognize. If recording fails, the error is only logged.
func (r *Recorder) Refused(ctx context.Context, entry auditlog.Entry) {
	entry.InstanceID, entry.Code = oneLine(entry.InstanceID), oneLine(entry.Code)
	r.refused(ctx, &r.changes, entry)
}

// refused records an entry if the sampler of its user and action accepts it. After a failure, the next entry counts the request as
// missed, and the failure is only logged: the client gets the same rejection with or without the entry.
func (r *Recorder) refused(ctx context.Context, sampler *samplers, entry auditlog.Entry) {
	identity := auth.FromContext(ctx)
	key := sampled{identity.Name, string(identity.Means), entry.Action}

	missed, taken := sampler.take(key, r.clock.Now())
	if !taken {
		return
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusalTimeout)
	defer cancel()

	entry.Missed = missed
	if err := r.RecordAlone(ctx, entry); err != nil {
		sampler.miss(key, missed+1)
		r.log.WithError(err).WithFields(logrus.Fields{logging.Kind: entry.Action, logging.Status: entry.Status}).
			Warn("audit: recording a rejected request failed")
	}
}

// sampled identifies the rejected requests that share a sampler: rejected requests of one user, or of all unauthenticated
// clients, for one action. A flood of rejected requests from one user therefore does not crowd out the entries about others.
type sampled struct{ user, means, action string }

// samplers contains a sampler for each of the maxSamplers most recent user-action pairs. It is safe for concurrent use.
type samplers struct {
	mutex  *sync.Mutex
	recent *simplelru.LRU[sampled, *sampler]
}

func newSamplers() samplers {
	recent, _ := simplelru.NewLRU[sampled, *sampler](maxSamplers, nil) // fails only without a size

	return samplers{mutex: &sync.Mutex{}, recent: recent}
}

// take calls the take method of the key's sampler.
func (s *samplers) take(key sampled, now time.Time) (missed int, taken bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	return s.of(key).take(now)
}

// miss adds requests without an entry to the sampler of the key.
func (s *samplers) miss(key sampled, requests int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	s.of(key).missed += requests
}

// of returns the sampler of the key, and creates it if needed. The caller holds the mutex.
func (s *samplers) of(key sampled) *sampler {
	found, known := s.recent.Get(key)
	if !known {
		found = &sampler{limiter: rate.NewLimiter(refusalRate, refusalBurst)}
		s.recent.Add(key, found)
	}

	return found
}

// sampler accepts events up to a maximum rate. It counts the events that have no entry, so that the next entry can state their
// number.
type sampler struct {
	limiter *rate.Limiter
	missed  int
}

// take reports whether to record an event and, if so, how many events since the last recorded one have no entry.
func (s *sampler) take(now time.Time) (missed int, taken bool) {
	if !s.limiter.AllowN(now, 1) {
		s.missed++

		return 0, false
	}

	missed, s.missed = s.missed, 0

	return missed, true
}

// codeIn returns the error code in the body of a response. It returns an empty string if the body does not have the common error
// format.
func codeIn(response []byte) string {
	var body struct {
		Code string `json:"error"`
	}

	if json.Unmarshal(response, &body) != nil {
		return ""
	}

	return oneLine(body.Code)
}
