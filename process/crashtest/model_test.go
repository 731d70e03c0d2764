package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// The model of the engine: whatever happens to its replicas and to its operations, in whatever order, the rules hold that check
// and finally look at. What happens is drawn at random; a failure is shrunk to the shortest story that shows it.

// result is what a run of a step comes to.
type result string

const (
	done      result = "done"
	waits     result = "waits"
	transient result = "transient error"
	permanent result = "permanent error"
	panics    result = "panics"
	slow      result = "slow"
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
	doEmploy = "employ"
)

// data is what the steps share.
type data struct {
	Done []string `json:"done"`
}

// model is a store, its replicas, and what is known of each operation besides what is stored.
type model struct {
	*Play[data]

	db       *storage.DB
	accepted []string
	mutex    sync.Mutex
	scripts  map[string][]result
	failed   map[string]bool            // a run came to an error for good
	done     map[string]map[string]bool // steps that were done or left out
	canceled map[string]bool
	before   map[string]process.Record
	wrong    []string
}

// scripted is a step that comes to what its operation's script says.
type scripted struct {
	model *model
	name  string
	line  *Line
}

func (s scripted) Name() string { return s.name }

func (s scripted) Run(ctx context.Context, operation process.Operation[data], _ logrus.FieldLogger,
) (process.Operation[data], time.Duration, error) {
	came := s.model.next(operation.ID)
	if came == slow {
		if err := s.line.Outside(ctx, s.name, func(context.Context) error { return nil }); err != nil {
			return operation, 0, failure.Wrap(failure.Transient, err, "it is away")
		}
	}

	switch came {
	case waits:
		operation.WaitingFor = operation.ID

		return process.Await(operation, "it waits", 30*time.Second, 24*time.Hour)
	case transient:
		return operation, 0, failure.New(failure.Transient, "it is away")
	case permanent:
		return operation, 0, failure.New(failure.Permanent, "it is impossible")
	case panics:
		panic("as it were")
	default:
		s.model.stepDone(operation.ID, s.name)

		operation.Data.Done = append(operation.Data.Done, s.name)
		operation.WaitingFor = ""

		return operation, 0, nil
	}
}

// next takes the next result from the operation's script.
func (m *model) next(operationID string) result {
	m.mutex.Lock()
	defer m.mutex.Unlock()

	script := m.scripts[operationID]
	if len(script) == 0 {
		return done
	}

	m.scripts[operationID] = script[1:]
	m.failed[operationID] = m.failed[operationID] || script[0] == permanent || script[0] == panics

	return script[0]
}

func (m *model) stepDone(operationID, step string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()

	if m.done[operationID] == nil {
		m.done[operationID] = map[string]bool{}
	}

	m.done[operationID][step] = true
}

const (
	firstKind, secondKind = "first", "second"
)

func (m *model) processes(line *Line) []process.Process[data] {
	stage := func(name string, steps ...string) process.Stage[data] {
		made := process.Stage[data]{Name: name, Retry: process.RetryPolicy{
			First: time.Second, Cap: 8 * time.Second, Factor: 2, Window: 24 * time.Hour,
		}}

		for _, step := range steps {
			made.Steps = append(made.Steps, process.Task[data]{Step: scripted{model: m, name: step, line: line}, Skippable: true})
		}

		return made
	}
	stages := []process.Stage[data]{stage("one", "A", "B"), stage("two", "C"), stage("three", "D", "E")}

	return []process.Process[data]{
		{Kind: firstKind, Limit: 48 * time.Hour, Stages: stages},
		{Kind: secondKind, Limit: 48 * time.Hour, Stages: stages[1:]},
	}
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
	case doEmploy:
		m.employ()
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
		_, err := m.world.Store.Accept(m.Context(), tx, process.New{
			ID: id, Kind: kind, InstanceID: instance, Tenant: instance, Payload: json.RawMessage(`{}`), At: time.Now(),
		})

		return err
	})
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

func (m *model) inTx(work func(tx storage.Tx) error) {
	if err := m.db.InTx(m.Context(), work); err != nil {
		m.Fatal(err)
	}
}

func (m *model) note(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// follows are the states in which an operation may be found after having been in the first one.
func follows(before, now process.State) bool {
	switch before {
	case process.Pending:
		return true
	case process.InProgress:
		return now != process.Pending
	case process.Canceling:
		return now == process.Canceling || now == process.Canceled
	default:
		return now == before
	}
}

// check looks at the rules that hold at any moment.
func (m *model) check() {
	active := map[string]string{}

	for _, id := range m.accepted {
		now := m.get(id)
		before, known := m.before[id]
		m.before[id] = now

		if known && !follows(before.State, now.State) {
			m.note("%s was %s and is %s", id, before.State, now.State)
		}

		if known && before.State.Terminal() && (!now.FinishedAt.Equal(before.FinishedAt) || !slices.Equal(now.FinishedStages, before.FinishedStages)) {
			m.note("%s changed after its end: %+v, %+v", id, before, now)
		}

		if known && (len(now.FinishedStages) < len(before.FinishedStages) || now.Lease.Fence < before.Lease.Fence) {
			m.note("%s went back: %+v, %+v", id, before, now)
		}

		if now.State == process.InProgress || now.State == process.Canceling {
			if other, taken := active[now.InstanceID]; taken {
				m.note("%s and %s of one instance are active", other, id)
			}

			active[now.InstanceID] = id
		}
	}
}

// finally looks at the rules that hold when all has come to an end.
func (m *model) finally() {
	last := map[string]process.Record{}

	for _, id := range m.accepted {
		now := m.get(id)
		m.wrong = append(m.wrong, m.judge(id)...)

		if m.canceled[id] != (now.State == process.Canceled) {
			m.note("%s is %s, it is %t that it was to be canceled", id, now.State, m.canceled[id])
		}

		if now.State == process.Failed && !m.failed[id] {
			m.note("%s failed without a reason: %+v", id, now.Problem)
		}

		for _, stage := range now.FinishedStages {
			for _, step := range map[string][]string{"one": {"A", "B"}, "two": {"C"}, "three": {"D", "E"}}[stage] {
				if !m.done[id][step] {
					m.note("%s has finished stage %s without step %s", id, stage, step)
				}
			}
		}

		if want := map[string]int{firstKind: 3, secondKind: 2}[now.Kind]; now.State == process.Succeeded && len(now.FinishedStages) != want {
			m.note("%s succeeded with the stages %v", id, now.FinishedStages)
		}

		if before, any := last[now.InstanceID]; any && !now.StartedAt.IsZero() && now.StartedAt.Before(before.FinishedAt) {
			m.note("%s began before %s of its instance had ended", id, before.ID)
		}

		if !now.StartedAt.IsZero() {
			last[now.InstanceID] = now
		}
	}

	m.wrong = append(m.wrong, m.witness.wrong...)
}

// tell plays the actions and returns what is wrong.
func tellActions(t *testing.T, actions []action) (wrong []string) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		db := storagetest.Volatile(t)

		store, err := operations.Open(t.Context(), db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		m := &model{
			db: db, scripts: map[string][]result{}, failed: map[string]bool{}, done: map[string]map[string]bool{},
			canceled: map[string]bool{}, before: map[string]process.Record{},
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
				doAccept, doAccept, doAccept, doCancel, doSkip, doWake, doCrash, doFreeze, doEmploy,
			}).Draw(t, "what"),
			Instance: rapid.IntRange(0, 2).Draw(t, "instance"),
			For: rapid.SampledFrom([]time.Duration{
				0, 100 * time.Millisecond, time.Second, 3 * time.Second, 8 * time.Second, 20 * time.Second,
			}).Draw(t, "for"),
		}

		if drawn.What == doAccept {
			drawn.Script = rapid.SliceOfN(rapid.SampledFrom([]result{done, done, waits, transient, slow, slow, permanent, panics}), 0, 8).
				Draw(t, "script")
		}

		return drawn
	})
}

func TestEngineAgainstItsModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		story := rapid.SliceOfN(actions(), 1, 20).Draw(r, "story")

		for _, wrong := range tellActions(t, story) {
			r.Error(wrong)
		}
	})
}
