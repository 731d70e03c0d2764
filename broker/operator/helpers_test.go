package operator_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// named is a step that only has a name.
type named string

func (n named) Name() string { return string(n) }

func (named) Run(_ context.Context, operation process.Operation[environment.Data], _ logrus.FieldLogger,
) (process.Operation[environment.Data], time.Duration, error) {
	return operation, 0, nil
}

// engineOn returns an engine that is never started. It knows the kinds of the stored operations, and allows operators to skip the
// Probe step.
func engineOn(t *testing.T, store process.Store) *process.Engine[environment.Data] {
	t.Helper()

	stage := func(name, retryFrom string, steps []process.Task[environment.Data]) process.Stage[environment.Data] {
		return process.Stage[environment.Data]{Name: name, Retry: process.DefaultRetry(), RetryFrom: retryFrom, Steps: steps}
	}

	provision := process.Process[environment.Data]{
		Kind: environment.KindProvision, Limit: time.Hour, Stages: []process.Stage[environment.Data]{
			stage("start", "", process.Steps[environment.Data](named("Starting"))),
			stage("create_runtime", "", process.Steps[environment.Data](named("Order"))),
			stage("check_runtime", "create_runtime", process.Steps[environment.Data](named("Check"))),
			stage("post_actions", "", process.Skippable[environment.Data](named("Probe"))),
		},
	}
	deprovision := process.Process[environment.Data]{
		Kind: environment.KindDeprovision, Limit: time.Hour, Stages: []process.Stage[environment.Data]{
			stage("remove", "", process.Steps[environment.Data](named("Remove"))),
		},
	}

	bind := process.Process[environment.Data]{
		Kind: environment.KindBind, Limit: time.Hour, Stages: []process.Stage[environment.Data]{
			stage("create_access", "", process.Steps[environment.Data](named("Create"))),
		},
	}

	processes := []process.Process[environment.Data]{provision, deprovision, bind}
	for _, kind := range []string{
		environment.KindUpdate, environment.KindSuspend, environment.KindResume, environment.KindUpgradeCluster, environment.KindUnbind,
	} {
		processes = append(processes, process.Process[environment.Data]{
			Kind: kind, Limit: time.Hour, Stages: []process.Stage[environment.Data]{
				stage("change", "", process.Steps[environment.Data](named("Change"))),
			},
		})
	}

	engine, err := process.NewEngine(store, process.DefaultConfig(), clock.RealClock{}, logging.Discard(), processes...)
	if err != nil {
		t.Fatal(err)
	}

	return engine
}

func onEach(t *testing.T, test func(b *bench)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()
		test(benchOn(t, db))
	})
}

// intervene sends an intervention as the user with the operator role.
func (b *bench) intervene(verb, id, body string) reply {
	b.Helper()

	// Send no Content-Length, so that the limit applies while the body is read.
	return b.send("operator", "POST", "/operations/"+id+"/"+verb, io.MultiReader(strings.NewReader(body)))
}

// onlyReason is the body of an intervention with only a reason.
const onlyReason = `{"reason": "the quota was raised"}`

// at returns a change that sets the current step and the finished stages of an operation. If released is true, it also
// removes the lease.
func at(stage, step string, released bool, finished ...string) func(*process.Progress) {
	return func(progress *process.Progress) {
		progress.Record.Stage, progress.Record.Step, progress.Record.FinishedStages = stage, step, finished
		progress.Release = released
	}
}

// everything returns all rows of operations, timelines and instances. Tests compare the results before and after a
// rejected request.
func (b *bench) everything() map[string][]string {
	b.Helper()

	rows := map[string][]string{}

	for table, query := range map[string]string{
		"operations": `SELECT id || state || step || skip_step || skip_reason || position || woken || next_run_at || updated_at FROM operations ORDER BY id`,
		"timeline":   `SELECT operation_id || seq || outcome || message FROM timeline ORDER BY operation_id, seq`,
		"instances":  `SELECT id || updated_at FROM instances ORDER BY id`,
	} {
		read, err := storage.Select[string](b.Context(), b.db.Reader(), query)
		if err != nil {
			b.Fatal(err)
		}

		rows[table] = read
	}

	return rows
}

func (b *bench) timeline(id string) []string {
	b.Helper()

	timeline, err := b.operations.Timeline(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}

	var lines []string
	for _, entry := range timeline {
		lines = append(lines, string(entry.Outcome)+": "+entry.Message)
	}

	return lines
}

func (b *bench) wantTimeline(reason, id string, want ...string) {
	b.Helper()

	if diff := cmp.Diff(want, b.timeline(id)); diff != "" {
		b.Errorf("\n%s\ntimeline: -want +got\n%s", reason, diff)
	}
}

// auditLine is a line of the log whose message starts with "audit:".
type auditLine struct {
	Level, Message, User, Operation, Successor, Instance, Kind, Reason string
}

func (b *bench) audited() []auditLine {
	b.Helper()

	var lines []auditLine

	for _, entry := range b.log.AllEntries() {
		if !strings.HasPrefix(entry.Message, "audit: ") {
			continue
		}

		field := func(name string) string {
			text, _ := entry.Data[name].(string)

			return text
		}

		lines = append(lines, auditLine{
			Level: entry.Level.String(), Message: entry.Message, User: field(logging.User), Operation: field(logging.OperationID),
			Successor: field(logging.SuccessorID), Instance: field(logging.InstanceID), Kind: field(logging.Kind), Reason: field(logging.Reason),
		})
	}

	return lines
}

// answered returns the operation in the response to an accepted intervention.
func (b *bench) answered(reason string, got reply) operatorapi.Operation {
	b.Helper()

	return read[operatorapi.Operation](b, b.want(reason, got, http.StatusAccepted))
}

func (b *bench) payload(id string) json.RawMessage {
	b.Helper()

	payload, err := b.operations.Payload(b.Context(), b.operations.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	return payload
}

func (b *bench) inTx(work func(tx storage.Tx) error) {
	b.Helper()

	if err := b.db.InTx(b.Context(), work); err != nil {
		b.Fatal(err)
	}
}

// drop deletes the row of an instance directly, without an operation.
func (b *bench) drop(id string) {
	b.Helper()
	b.inTx(func(tx storage.Tx) error {
		_, err := storage.Exec(b.Context(), tx, `DELETE FROM instances WHERE id = ?`, id)

		return err
	})
}

// spoil makes the stored data of an operation undecryptable, as if its key had been removed from the configuration.
func (b *bench) spoil(id string) {
	b.Helper()
	b.inTx(func(tx storage.Tx) error {
		_, err := storage.Exec(b.Context(), tx, `UPDATE operations SET payload = 'lost:' || payload WHERE id = ?`, id)

		return err
	})
}
