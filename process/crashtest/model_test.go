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
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// action is something that happens.
type action struct {
	What string
	// Instance is the instance, or the replica, that it happens to.
	Instance int
	// Script is what the first runs of an accepted operation's steps come to, whichever steps these are. The later ones are done.
	Script []result
	// For is how long it takes until the next action.
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
	doEmploy = "employ"
	doRetry  = "retry"
)

// data is what the steps share.
type data struct {
	Done []string `json:"done"`
}

// model is of the engine: whatever happens to its replicas and to its operations, in whatever order, the rules hold that check and
// finally look at. It is a store, its replicas, and what is known of each operation besides what is stored.
type model struct {
	*Play[data]

	db       *storage.DB
	accepted []string
	mutex    sync.Mutex
	scripts  map[string][]result
	failed   map[string]bool            // a run came to an error for good
	done     map[string]map[string]bool // steps that were done or left out
	canceled map[string]bool
	kept     map[string][]string // stages that a retry begins with
	before   map[string]process.Record
	wrong    []string
	// successors makes the operations that retry others.
	successors *process.Engine[data]
}

// do has the action happen.
func (m *model) do(action action) {
	instance := fmt.Sprint("instance-", action.Instance)

	switch action.What {
	case doAccept:
		m.accept(instance, action.Script)
	case doCancel:
		m.inTx(func(tx storage.Tx) error {
			ids, err := m.world.Store.Cancel(m.Context(), tx, instance, "it is not wanted", time.Now())
			for _, id := range ids {
				m.canceled[id] = true
			}

			return err
		})
	case doSkip:
		m.skip(instance)
	case doWake:
		if _, err := m.world.Store.Wake(m.Context(), m.accepted, time.Now()); err != nil {
			m.Fatal(err)
		}
	case doCrash:
		m.replica(action.Instance).die()
	case doFreeze:
		m.replica(action.Instance).stop(freeze)
	case doStop:
		m.replica(action.Instance).kill()
	case doEmploy:
		m.employ()
	case doRetry:
		m.retry(instance)
	}

	time.Sleep(action.For)
}

func (m *model) replica(number int) *Line { return m.lines[len(m.lines)-1-number%len(m.lines)] }

func (m *model) accept(instance string, script []result) {
	id := fmt.Sprint("op-", len(m.accepted))
	kind := []string{firstKind, secondKind}[len(m.accepted)%2]
	m.accepted = append(m.accepted, id)
	m.mutex.Lock()
	m.scripts[id] = script
	m.mutex.Unlock()

	m.inTx(func(tx storage.Tx) error {
		err := m.world.Store.Accept(m.Context(), tx, process.New{
			ID: id, Kind: kind, InstanceID: instance, Tenant: instance, Payload: json.RawMessage(`{}`), At: time.Now(),
		})

		return err
	})
}

// retry goes on where the newest operation of the instance has failed or was canceled, as an operator may have it.
func (m *model) retry(instance string) {
	var former process.Record

	for _, record := range m.all() {
		if record.InstanceID == instance && record.Position > former.Position {
			former = record
		}
	}

	if former.State != process.Failed && former.State != process.Canceled {
		return
	}

	var err error
	if former.Payload, err = m.world.Store.Payload(m.Context(), m.world.Store.Reader(), former.ID); err != nil {
		m.Fatal(err)
	}

	next := m.successors.Successor(former, fmt.Sprint("op-", len(m.accepted)), time.Now())
	m.accepted, m.kept[next.ID] = append(m.accepted, next.ID), next.FinishedStages

	m.mutex.Lock()
	m.done[next.ID] = maps.Clone(m.done[former.ID])
	m.mutex.Unlock()
	m.inTx(func(tx storage.Tx) error { return m.world.Store.Accept(m.Context(), tx, next) })
}

// skip has the step left out at which the instance's operation is.
func (m *model) skip(instance string) {
	for _, id := range m.accepted {
		record := m.get(id)
		if record.InstanceID != instance || record.Step == "" {
			continue
		}

		m.inTx(func(tx storage.Tx) error {
			taken, err := m.world.Store.Skip(m.Context(), tx, id, process.Skip{Step: record.Step, Reason: "it is stuck"}, time.Now())
			if taken {
				m.stepDone(id, record.Step)
			}

			return err
		})
	}
}

// all returns the operations as they are at one moment.
func (m *model) all() map[string]process.Record {
	records := map[string]process.Record{}

	m.inTx(func(tx storage.Tx) error {
		for _, id := range m.accepted {
			record, err := m.world.Store.Get(m.Context(), tx, id)
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

// tellActions plays the actions on a new database and returns what is wrong.
func tellActions(t *testing.T, open func(t *testing.T) *storage.DB, actions []action) (wrong []string) {
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

		m.successors, err = process.NewEngine(store, process.DefaultConfig(), clock.RealClock{}, logging.Discard(), m.processes(Undisturbed())...)
		if err != nil {
			t.Fatal(err)
		}

		m.Play = newPlay(t, World[data]{Store: store, Processes: m.processes}, nil)

		defer m.end()

		for _, action := range actions {
			m.do(action)
			m.check()
		}

		m.recover()
		m.finally()

		wrong = m.wrong
	})

	return wrong
}

var errNeverEnds = errors.New("it does not come to an end")

// recover ends the faults and waits until all operations have ended.
func (m *model) recover() {
	m.employ()

	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Second) {
		m.check()

		if !slices.ContainsFunc(m.accepted, func(id string) bool { return !m.get(id).State.Terminal() }) {
			return
		}
	}

	for _, id := range m.accepted {
		if record := m.get(id); !record.State.Terminal() {
			m.note("%s: %v: %+v\n%s", id, errNeverEnds, record, tell(m.timeline(id)))
		}
	}
}

func actions() *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		drawn := action{
			What: rapid.SampledFrom([]string{
				doAccept, doAccept, doAccept, doCancel, doSkip, doRetry, doWake, doCrash, doFreeze, doStop, doEmploy,
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

func TestEngineAgainstItsModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		story := stories().Draw(r, "story")

		for _, wrong := range tellActions(t, func(t *testing.T) *storage.DB { t.Helper(); return storagetest.Volatile(t) }, story) {
			r.Error(wrong)
		}
	})
}

// TestEngineAgainstItsModelOnPostgreSQL plays a few stories, the same ones each time, where replicas do work side by side.
func TestEngineAgainstItsModelOnPostgreSQL(t *testing.T) {
	const few = 4

	postgrestest.Database(t) // the server is started on real time

	for seed := range few {
		story := stories().Example(seed)

		for _, wrong := range tellActions(t, func(t *testing.T) *storage.DB { t.Helper(); return storagetest.Open(t, postgrestest.Database(t)) }, story) {
			t.Errorf("%s\n%+v", wrong, story)
		}
	}
}

func stories() *rapid.Generator[[]action] {
	const longest = 20

	return rapid.SliceOfN(actions(), 1, longest)
}
