package prefill_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/bench/prefill"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// fixture contains the stores of a database with one instance, which has two operations, an endpoint and an audit log entry.
type fixture struct {
	*testing.T

	db         *storage.DB
	pool       *sqlx.DB
	keys       *secret.Keyring
	instances  *instances.Store
	operations *operations.Store
	endpoints  *endpoints.Store
	entries    *auditlog.Store
}

func newFixture(t *testing.T) *fixture {
	t.Helper()

	config, keys := storagetest.Postgres(t), storagetest.Keys(t)
	f := &fixture{T: t, db: storagetest.Open(t, config), keys: keys}

	var errs [4]error

	f.instances, errs[0] = instances.Open(t.Context(), f.db, keys)
	f.operations, errs[1] = operations.Open(t.Context(), f.db, keys)
	f.endpoints, errs[2] = endpoints.Open(t.Context(), f.db, keys)
	f.entries, errs[3] = auditlog.Open(t.Context(), f.db, time.Hour)
	f.check(errors.Join(errs[:]...))

	var err error

	f.pool, err = sqlx.Open("postgres", fmt.Sprintf("host=%s port=%s user=%s password='%s' dbname=%s sslmode=disable",
		config.Host, config.Port, config.User, config.Password.Reveal(), config.Name))
	f.check(err)
	t.Cleanup(func() { _ = f.pool.Close() })

	model := environment.Instance{
		ID: "the-model", ShootName: "c-model", RuntimeID: "runtime-of-the-model", GlobalAccountID: "tenant-of-the-model",
		CreatedAt: time.Now(), UpdatedAt: time.Now(),
	}

	payload, err := json.Marshal(environment.Data{Instance: model, Provisioning: "operation-of-the-model"})
	f.check(err)
	f.check(f.db.InTx(t.Context(), func(tx storage.Tx) error {
		errs := []error{storagetest.Insert(t.Context(), tx, f.instances, model)}

		for _, id := range []string{"operation-of-the-model", "update-of-the-model"} {
			errs = append(errs, f.operations.Accept(t.Context(), tx, process.New{
				ID: id, Kind: environment.KindProvision, InstanceID: model.ID, Payload: payload, At: time.Now(), Why: "a test",
			}))
		}

		return errors.Join(append(errs, f.entries.Insert(t.Context(), tx, auditlog.Entry{
			ID: "entry-of-the-model", At: time.Now(), Action: auditlog.ActionExpire, InstanceID: model.ID,
		}))...)
	}))
	f.check(f.endpoints.Set(t.Context(), model, environment.Endpoint{Server: "https://the-model"}, time.Now().Add(time.Hour)))
	f.check(f.entries.Chain(auditlog.ChainOptions{Clock: clock.RealClock{}, Log: logging.Discard(), Metrics: prometheus.NewRegistry()}).
		Pass(t.Context()))

	return f
}

func (f *fixture) check(err error) {
	f.Helper()

	if err != nil {
		f.Fatal(err)
	}
}

// count returns the result of a SELECT COUNT query.
func (f *fixture) count(query string) (count int) {
	f.Helper()
	f.check(f.pool.GetContext(f.Context(), &count, query))

	return count
}

// TestMultiply checks that the stores read each copy as a separate instance, and that the sealed values contain the
// identifying values of the copy.
func TestMultiply(t *testing.T) {
	const count = 5

	f := newFixture(t)

	copies := prefill.Multiply(t, f.pool, f.keys, prefill.Options{Count: count})
	if len(copies) != count {
		t.Fatalf("want %d instances, got %d", count, len(copies))
	}

	shoots := map[string]bool{}

	for _, each := range copies {
		instance, err := f.instances.Get(t.Context(), f.db.Reader(), each.Instance)
		f.check(err)

		record, err := f.operations.Get(t.Context(), f.db.Reader(), each.Operation)
		f.check(err)

		payload, err := f.operations.Payload(t.Context(), f.db.Reader(), each.Operation)
		f.check(err)

		var data environment.Data
		if err := json.Unmarshal(payload, &data); err != nil {
			t.Fatalf("reading the payload of operation %s: %v", each.Operation, err)
		}

		if record.InstanceID != each.Instance || record.Position != 2 || data.Instance.ID != each.Instance ||
			data.Instance.ShootName != instance.ShootName || data.Instance.RuntimeID != instance.RuntimeID {
			t.Errorf("inconsistent copy: instance %+v, operation of %s with %+v", instance, record.InstanceID, data)
		}

		timeline, err := f.operations.Timeline(t.Context(), each.Operation)
		if err != nil || len(timeline) != 1 {
			t.Errorf("operation %s: timeline %v, %v", each.Operation, timeline, err)
		}

		endpoint, err := f.endpoints.Get(t.Context(), instance)
		if err != nil || endpoint.Server != "https://"+each.Instance {
			t.Errorf("instance %s has the endpoint %+v, %v", each.Instance, endpoint, err)
		}

		shoots[instance.ShootName] = true
	}

	if len(shoots) != count {
		t.Errorf("%d instances have %d distinct Shoot names", count, len(shoots))
	}

	const rowsOfInstance = 3 // two operations and an entry

	if unchained := f.count(`SELECT (SELECT count(*) FROM operations) + (SELECT count(*) FROM audit) - count(DISTINCT id) FROM audit_chain`); unchained != 0 {
		t.Errorf("%d rows have no record in the hash chain", unchained)
	}

	if head := f.count(`SELECT number FROM audit_chain_head`); head != count*rowsOfInstance {
		t.Errorf("the head of the hash chain is %d, want %d", head, count*rowsOfInstance)
	}
}

// TestAges checks that old copies have no timelines, that the payloads of older operations can be left out, and that nothing is
// due that was not due for the original.
func TestAges(t *testing.T) {
	const (
		count = 100
		day   = 24 * time.Hour
	)

	f := newFixture(t)
	prefill.Multiply(t, f.pool, f.keys, prefill.Options{Count: count, Age: count * day, Timelines: 30 * day, Emptied: true})

	for query, want := range map[string]int{
		`SELECT count(*) FROM instances WHERE created_at < now() - interval '1212 hours'`:                      49,
		`SELECT count(*) FROM operations WHERE timeline_removed_at IS NULL`:                                    2 * 31,
		`SELECT count(DISTINCT operation_id) FROM timeline`:                                                    2 * 31,
		`SELECT count(*) FROM timeline JOIN operations ON id = operation_id WHERE timeline_removed_at IS NULL`: 2 * 31,
		`SELECT count(*) FROM operations WHERE length(payload) < 100`:                                          count - 1,
		`SELECT count(*) FROM endpoints WHERE due_at > now()`:                                                  count,
	} {
		if found := f.count(query); found != want {
			t.Errorf("%s: want %d, got %d", query, want, found)
		}
	}
}
