package webhooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	clocktesting "k8s.io/utils/clock/testing"

	delivery "github.com/environment-broker/environment-broker/broker/webhooks"
	"github.com/environment-broker/environment-broker/internal/clients/webhook"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

// fixture has the stores of a database, a receiver and a clock.
type fixture struct {
	*testing.T

	db         *storage.DB
	operations *operations.Store
	events     *eventlog.Store
	store      *webhooks.Store
	metrics    *delivery.Metrics
	clock      *clocktesting.FakeClock
	log        *bytes.Buffer
	logger     logrus.FieldLogger
	client     *webhook.Client
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	f, keys := &fixture{T: t, db: db, clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Microsecond)), log: &bytes.Buffer{}}, storagetest.Keys(t)

	var err error
	if f.operations, err = operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if f.events, err = eventlog.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	if f.store, err = webhooks.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	allowed, err := networks.Parse([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}

	logger := logrus.New()
	logger.SetOutput(f.log)
	f.logger, f.client = logger, webhook.New(allowed, delivery.Timeout)
	f.metrics = delivery.NewMetrics(f.store, f.clock, f.logger)

	return f
}

// accept accepts operations with the given IDs on the instance, and publishes their events.
func (f *fixture) accept(instance string, ids ...string) {
	f.Helper()

	for _, id := range ids {
		if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
			return f.operations.Accept(f.Context(), tx, process.New{
				ID: id, Kind: environment.KindUpdate, InstanceID: instance, Tenant: "account", Payload: []byte(`{}`), At: f.clock.Now(),
			})
		}); err != nil {
			f.Fatal(err)
		}
	}

	if _, err := f.events.Publish(f.Context(), f.clock.Now()); err != nil {
		f.Fatal(err)
	}
}

// receiver is a receiver of messages, which verifies their signatures.
type receiver struct {
	*httptest.Server

	mutex    sync.Mutex
	verifier *standardwebhooks.Webhook
	// respond returns the status for an operation, and may set headers.
	respond func(operation string, header http.Header) int
	// received are the operations in the order of their arrival.
	received []string
	problem  error
}

// add creates a webhook with a receiver.
func (f *fixture) add(id string, filter eventlog.Filter, respond func(operation string, header http.Header) int) *receiver {
	f.Helper()

	key := webhook.NewSecret()

	verifier, err := standardwebhooks.NewWebhook(key.Reveal())
	if err != nil {
		f.Fatal(err)
	}

	r := &receiver{verifier: verifier, respond: respond}
	r.Server = httptest.NewServer(http.HandlerFunc(r.receive))
	f.Cleanup(r.Close)

	if err := f.store.Create(f.Context(), f.db.Writer(), webhooks.Webhook{
		ID: id, URL: secret.String(r.URL + "/hook?token=t0ken"), Secrets: webhooks.Secrets{Current: key}, Filter: filter, CreatedAt: f.clock.Now(),
	}); err != nil {
		f.Fatal(err)
	}

	return r
}

func (r *receiver) receive(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)

	var event operatorapi.CloudEvent
	if err == nil {
		err = json.Unmarshal(body, &event)
	}

	if err == nil && request.Header.Get("Webhook-Id") != event.ID {
		err = fmt.Errorf("the message has the ID %s, its event %s", request.Header.Get("Webhook-Id"), event.ID)
	}

	r.mutex.Lock()
	if err == nil {
		err = r.verifier.VerifyIgnoringTimestamp(body, request.Header)
	}

	if err != nil {
		r.problem = err
	}

	r.received = append(r.received, event.Data.OperationID)
	r.mutex.Unlock()

	status := http.StatusNoContent
	if r.respond != nil {
		status = r.respond(event.Data.OperationID, w.Header())
	}

	w.WriteHeader(status)
}

// all returns the received operations.
func (r *receiver) all(t *testing.T) []string {
	t.Helper()

	r.mutex.Lock()
	defer r.mutex.Unlock()

	if r.problem != nil {
		t.Error(r.problem)
	}

	return slices.Clone(r.received)
}

func (r *receiver) want(t *testing.T, reason string, want ...string) {
	t.Helper()

	if got := r.all(t); !slices.Equal(got, want) {
		t.Errorf("%s: received %v, want %v", reason, got, want)
	}
}

// replica returns a replica with the store and the function that sends.
func (f *fixture) replica(store delivery.Store, send func(context.Context, webhook.Message) error) *delivery.Deliverer {
	return delivery.New(delivery.Options{
		Store: store, Events: f.events, Send: send, Jitter: func(pause time.Duration) time.Duration { return pause }, Metrics: f.metrics,
		Clock: f.clock, Log: f.logger,
	})
}

// deliver starts the deliveries that are due and waits until they have ended.
func (f *fixture) deliver(replica *delivery.Deliverer) {
	f.Helper()

	if err := replica.Start(f.Context()); err != nil {
		f.Error(err)
	}

	replica.Wait()
}

// undelivered returns the dead letters of the webhook, or its pending deliveries.
func (f *fixture) undelivered(id string, dead bool) []webhooks.Delivery {
	f.Helper()

	found, err := f.store.Undelivered(f.Context(), id, dead, 0, 100)
	if err != nil {
		f.Fatal(err)
	}

	return found
}

// wantNoSecrets fails the test if the log or an error of a delivery contains a secret.
func (f *fixture) wantNoSecrets(id string) {
	f.Helper()

	texts := []string{f.log.String()}
	for _, each := range append(f.undelivered(id, true), f.undelivered(id, false)...) {
		texts = append(texts, each.Error)
	}

	for _, secret := range []string{"t0ken", "whsec_"} {
		if strings.Contains(strings.Join(texts, "\n"), secret) {
			f.Errorf("the log or an error contains %s: %v", secret, texts)
		}
	}
}
