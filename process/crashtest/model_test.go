package crashtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// action is one step of a random script: a request, an intervention, or a fault of a replica.
type action struct {
	What string
	// Instance is the number of the affected instance or replica.
	Instance int
	// Script lists the results of the first attempts of an accepted operation, in order. All later attempts succeed.
	Script []result
	// For is the pause before the next action.
	For time.Duration
}

const (
	doAccept = "accept"
	doCancel = "cancel"
	doSkip   = "skip"
	doWake   = "wake"
	doCrash  = "crash"
	doFreeze = "freeze"
	doStop   = "stop"
	doStart  = "startReplica"
	doRetry  = "retry"
)

// data is the data of the operations.
type data struct {
	Done []string `json:"done"`
}

// model executes actions on a store and its replicas, and records the state that each operation must have. The rules of check
// must hold after every action, and the rules of finally after all operations have ended.
type model struct {
	*Run[data]

	db       *storage.DB
	accepted []string
	mutex    sync.Mutex
	scripts  map[string][]result
	failed   map[string]bool            // operations with a permanently failed attempt
	done     map[string]map[string]bool // done or skipped steps
	canceled map[string]bool
	kept     map[string][]string // stages that a retry reuses
	before   map[string]process.Record
	problems []string
	// successors is an engine that never runs. It creates the retries of operations.
	successors *process.Engine[data]
}

// do executes the action.
func (m *model) do(action action) {
	instance := fmt.Sprint("instance-", action.Instance)

	switch action.What {
	case doAccept:
		m.accept(instance, action.Script)
	case doCancel:
		m.inTx(func(tx storage.Tx) error {
			ids, err := m.env.Store.Cancel(m.Context(), tx, instance, "canceled by the test", time.Now())
			for _, id := range ids {
				m.canceled[id] = true
			}

			return err
		})
	case doSkip:
		m.skip(instance)
	case doWake:
		if _, err := m.env.Store.Wake(m.Context(), m.accepted, time.Now()); err != nil {
			m.Fatal(err)
		}
	case doCrash:
		m.replica(action.Instance).die()
	case doFreeze:
		m.replica(action.Instance).freeze(freezeTime)
	case doStop:
		m.replica(action.Instance).kill()
	case doStart:
		m.startReplica()
	case doRetry:
		m.retry(instance)
	}

	time.Sleep(action.For)
}

func (m *model) replica(number int) *Proxy { return m.proxies[len(m.proxies)-1-number%len(m.proxies)] }

func (m *model) accept(instance string, script []result) {
	id := fmt.Sprint("op-", len(m.accepted))
	kind := []string{firstKind, secondKind}[len(m.accepted)%2]
	m.accepted = append(m.accepted, id)
	m.mutex.Lock()
	m.scripts[id] = script
	m.mutex.Unlock()

	m.inTx(func(tx storage.Tx) error {
		err := m.env.Store.Accept(m.Context(), tx, process.New{
			ID: id, Kind: kind, InstanceID: instance, Tenant: instance, Payload: json.RawMessage(`{}`), At: time.Now(),
		})

		return err
	})
}

// retry retries the newest operation of the instance if it failed or was canceled, as an operator would.
func (m *model) retry(instance string) {
	var newest process.Record

	for _, record := range m.all() {
		if record.InstanceID == instance && record.Position > newest.Position {
			newest = record
		}
	}

	if newest.State != process.Failed && newest.State != process.Canceled {
		return
	}

	var err error
	if newest.Payload, err = m.env.Store.Payload(m.Context(), m.env.Store.Reader(), newest.ID); err != nil {
		m.Fatal(err)
	}

	next := m.successors.Successor(newest, fmt.Sprint("op-", len(m.accepted)), time.Now())
	m.accepted, m.kept[next.ID] = append(m.accepted, next.ID), next.FinishedStages

	m.mutex.Lock()
	m.done[next.ID] = maps.Clone(m.done[newest.ID])
	m.mutex.Unlock()
	m.inTx(func(tx storage.Tx) error { return m.env.Store.Accept(m.Context(), tx, next) })
}

// skip skips the current step of the instance's operation.
func (m *model) skip(instance string) {
	for _, id := range m.accepted {
		record := m.get(id)
		if record.InstanceID != instance || record.Step == "" {
			continue
		}

		m.inTx(func(tx storage.Tx) error {
			taken, err := m.env.Store.Skip(m.Context(), tx, id, process.Skip{Step: record.Step, Reason: "stuck"}, time.Now())
			if taken {
				m.stepDone(id, record.Step)
			}

			return err
		})
	}
}

// all returns a snapshot of the operations, read by a single statement.
func (m *model) all() map[string]process.Record {
	records := map[string]process.Record{}

	m.inTx(func(tx storage.Tx) error {
		for _, id := range m.accepted {
			record, err := m.env.Store.Get(m.Context(), tx, id)
			if err != nil {
				return err
			}

			records[id] = record
		}

		return nil
	})

	return records
}

func (m *model) inTx(work func(tx storage.Tx) error) {
	if err := m.db.InTx(m.Context(), work); err != nil {
		m.Fatal(err)
	}
}

// runActions runs the actions on a new database and returns the violations.
func runActions(t *testing.T, open func(t *testing.T) *storage.DB, actions []action) (violations []string) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		db := open(t)

		store, err := operations.Open(t.Context(), db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		m := &model{
			db: db, scripts: map[string][]result{}, failed: map[string]bool{}, done: map[string]map[string]bool{},
			canceled: map[string]bool{}, kept: map[string][]string{}, before: map[string]process.Record{},
		}

		m.successors, err = process.NewEngine(store, process.DefaultConfig(), clock.RealClock{}, logging.Discard(), m.processes(Transparent())...)
		if err != nil {
			t.Fatal(err)
		}

		m.Run = newRun(t, Env[data]{Store: store, Processes: m.processes}, newFaults(nil))

		defer m.end()

		for _, action := range actions {
			m.do(action)
			m.check()
		}

		m.recover()
		m.finally()

		violations = m.problems
	})

	return violations
}

var errNotEnded = errors.New("the operation has not ended")

// recover starts a healthy replica and waits until all operations have ended.
func (m *model) recover() {
	m.startReplica()

	for end := time.Now().Add(operationTimeout); time.Now().Before(end); time.Sleep(5 * time.Second) {
		m.check()

		if !slices.ContainsFunc(m.accepted, func(id string) bool { return !m.get(id).State.Terminal() }) {
			return
		}
	}

	for _, id := range m.accepted {
		if record := m.get(id); !record.State.Terminal() {
			m.note("%s: %v: %+v\n%s", id, errNotEnded, record, text(m.timeline(id)))
		}
	}
}

func actions() *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		drawn := action{
			What: rapid.SampledFrom([]string{
				doAccept, doAccept, doAccept, doCancel, doSkip, doRetry, doWake, doCrash, doFreeze, doStop, doStart,
			}).Draw(t, "what"),
			Instance: rapid.IntRange(0, 2).Draw(t, "instance"),
			For: rapid.SampledFrom([]time.Duration{
				0, 100 * time.Millisecond, time.Second, 3 * time.Second, 8 * time.Second, 20 * time.Second,
			}).Draw(t, "for"),
		}

		if drawn.What == doAccept {
			drawn.Script = rapid.SliceOfN(rapid.SampledFrom([]result{done, done, waits, saves, transient, slow, slow, permanent, panics}), 0, 8).
				Draw(t, "script")
		}

		return drawn
	})
}

func TestEngineAgainstModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		script := scripts().Draw(r, "script")

		for _, violation := range runActions(t, func(t *testing.T) *storage.DB { t.Helper(); return storagetest.SQLite(t) }, script) {
			r.Error(violation)
		}
	})
}

// TestEngineAgainstModelOnPostgreSQL checks a few fixed scripts on PostgreSQL, where replicas work in parallel.
func TestEngineAgainstModelOnPostgreSQL(t *testing.T) {
	const few = 4

	storagetest.Postgres(t) // starts the server outside the bubble, where time is real

	for seed := range few {
		script := scripts().Example(seed)

		for _, violation := range runActions(t, func(t *testing.T) *storage.DB { t.Helper(); return storagetest.Open(t, storagetest.Postgres(t)) }, script) {
			t.Errorf("%s\n%+v", violation, script)
		}
	}
}

func scripts() *rapid.Generator[[]action] {
	const longest = 20

	return rapid.SliceOfN(actions(), 1, longest)
}
