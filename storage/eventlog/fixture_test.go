package eventlog_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)

// fixture contains the event log and the stores whose changes it records.
type fixture struct {
	*testing.T

	db             *storage.DB
	operations     *operations.Store
	instances      *instances.Store
	orchestrations *orchestrations.Store
	store          *eventlog.Store
}

func eachDatabase(t *testing.T, test func(f fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) { test(newFixture(t, db)) })
}

func newFixture(t *testing.T, db *storage.DB) fixture {
	t.Helper()

	f, keys := fixture{T: t, db: db}, storagetest.Keys(t)

	var err error
	if f.operations, err = operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if f.instances, err = instances.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if f.orchestrations, err = orchestrations.Open(t.Context(), db, f.operations); err != nil {
		t.Fatal(err)
	}

	if f.store, err = eventlog.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	return f
}

// tx runs work in a transaction that must succeed.
func (f fixture) tx(work func(tx storage.Tx) error) {
	f.Helper()

	if err := f.db.InTx(f.Context(), work); err != nil {
		f.Fatal(err)
	}
}

func operation(id, kind, object, account string) process.New {
	return process.New{ID: id, Kind: kind, InstanceID: object, Tenant: account, Payload: []byte(`{}`), At: now}
}

func (f fixture) accept(operation process.New) {
	f.Helper()
	f.tx(func(tx storage.Tx) error { return f.operations.Accept(f.Context(), tx, operation) })
}

func instance(id string) environment.Instance {
	return environment.Instance{
		ID: id, PlanID: "plan", PlanName: "aws", GlobalAccountID: "account", Region: "eu-central-1", ShootName: "c-" + id,
		CreatedAt: now, UpdatedAt: now,
	}
}

func (f fixture) publish() {
	f.Helper()

	if _, err := f.store.Publish(f.Context(), now.Add(time.Hour)); err != nil {
		f.Fatal(err)
	}
}

// published publishes new events and returns all events after the position that the filter selects.
func (f fixture) published(filter eventlog.Filter, after int64) []eventlog.Event {
	f.Helper()
	f.publish()

	var all []eventlog.Event

	for {
		events, last, err := f.store.Read(f.Context(), filter, after, 3)
		if err != nil {
			f.Fatal(err)
		}

		all = append(all, events...)

		if last == after {
			return all
		}

		after = last
	}
}

// text returns an event in one line, without its ID.
func text(event eventlog.Event) string {
	parts := []string{
		strconv.FormatInt(event.Position, 10), string(event.Type), event.InstanceID, event.BindingID, event.OrchestrationID, event.OperationID,
		event.Kind, event.Account, event.Plan, event.Region, event.State, event.Reason, event.Component, event.At.Format(time.TimeOnly),
	}
	if event.Wave > 0 {
		parts = append(parts, fmt.Sprint("wave ", event.Wave))
	}

	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " | ")
}

func (f fixture) want(reason string, filter eventlog.Filter, after int64, want ...string) {
	f.Helper()

	got := []string{}
	for _, event := range f.published(filter, after) {
		got = append(got, text(event))
	}

	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		f.Errorf("%s: -want +got\n%s", reason, diff)
	}
}
