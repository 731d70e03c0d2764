package crashtest

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// result is the scripted result of an attempt.
type result string

const (
	done      result = "done"
	waits     result = "waits"
	transient result = "transient error"
	permanent result = "permanent error"
	panics    result = "panics"
	slow      result = "slow"
	saves     result = "saves an intent"
)

// scripted is a step that returns the scripted results of its operation.
type scripted struct {
	model *model
	name  string
	proxy *Proxy
}

func (s scripted) Name() string { return s.name }

func (s scripted) Run(ctx context.Context, operation process.Operation[data], _ logrus.FieldLogger,
) (process.Operation[data], time.Duration, error) {
	result := s.model.next(operation.ID)
	if result == slow {
		if err := s.proxy.Call(ctx, s.name, func(context.Context) error { return nil }); err != nil {
			return operation, 0, failure.Wrap(failure.Transient, err, "the upstream is unavailable")
		}
	}

	if result == saves {
		operation.Data.Done = append(operation.Data.Done, s.name+" intended")

		if err := operation.Save(ctx); err != nil {
			return operation, 0, failure.Wrap(failure.Transient, err, "storing the intent")
		}
	}

	switch result {
	case waits:
		operation.WaitingFor = operation.ID

		return process.Await(operation, "the step waits", 30*time.Second, 24*time.Hour)
	case transient:
		return operation, 0, failure.New(failure.Transient, "the upstream is unavailable")
	case permanent:
		return operation, 0, failure.New(failure.Permanent, "the step cannot succeed")
	case panics:
		panic("scripted panic")
	default:
		s.model.stepDone(operation.ID, s.name)

		operation.Data.Done = append(operation.Data.Done, s.name)
		operation.WaitingFor = ""

		return operation, 0, nil
	}
}

// next returns the next result in the operation's script, or success at the end of the script.
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

func (m *model) processes(proxy *Proxy) []process.Process[data] {
	stage := func(name string, steps ...string) process.Stage[data] {
		made := process.Stage[data]{Name: name, Retry: process.RetryPolicy{
			First: time.Second, Cap: 8 * time.Second, Factor: 2, Window: 24 * time.Hour,
		}}

		for _, step := range steps {
			made.Steps = append(made.Steps, process.Task[data]{Step: scripted{model: m, name: step, proxy: proxy}, Skippable: true})
		}

		return made
	}
	stages := []process.Stage[data]{stage("one", "A", "B"), stage("two", "C"), stage("three", "D", "E")}

	return []process.Process[data]{
		{Kind: firstKind, Limit: 48 * time.Hour, Stages: stages},
		{Kind: secondKind, Limit: 48 * time.Hour, Stages: stages[1:]},
	}
}
