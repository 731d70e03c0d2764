package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// cluster is the data of the example. It is stored with the operation.
type cluster struct {
	Approval string `json:"approval"`
	Nodes    int    `json:"nodes"`
}

// awaitApproval is a step that waits. It polls the approval service until the cluster is approved.
type awaitApproval struct{ approvals *approvals }

func (awaitApproval) Name() string { return "Await_Approval" }

func (s awaitApproval) Run(_ context.Context, operation process.Operation[cluster], _ logrus.FieldLogger,
) (process.Operation[cluster], time.Duration, error) {
	approval, granted := s.approvals.poll()
	if !granted {
		return process.Await(operation, "the approval is pending", time.Second, time.Hour)
	}

	operation.Data.Approval = approval

	return operation, 0, nil
}

// createNodes is a step that checks which part of its work is done, because it may run again after a crash.
type createNodes struct{}

func (createNodes) Name() string { return "Create_Nodes" }

func (createNodes) Run(_ context.Context, operation process.Operation[cluster], _ logrus.FieldLogger,
) (process.Operation[cluster], time.Duration, error) {
	for operation.Data.Nodes < 4 {
		operation.Data.Nodes++
	}

	return operation, 0, nil
}

// approvals is an upstream that approves at the second poll.
type approvals struct{ polls int }

func (a *approvals) poll() (string, bool) {
	a.polls++

	return "approval 7", a.polls > 1
}

// A process is data: stages in order, each with its steps. A step that waits has a separate stage, so that earlier steps do not
// run again.
func Example() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	db, err := storage.Open(ctx, storage.Config{Driver: storage.DriverSQLite, Path: filepath.Join(folder, "example.db")})
	if err != nil {
		panic(err)
	}
	defer db.Close()

	keys, err := secret.ParseKeyring(secret.NewKey("example"))
	if err != nil {
		panic(err)
	}

	store, err := operations.Open(ctx, db, keys)
	if err != nil {
		panic(err)
	}

	create := process.Process[cluster]{
		Kind:  "create",
		Limit: time.Hour,
		Stages: []process.Stage[cluster]{
			{Name: "approval", Retry: process.DefaultRetry(), Steps: process.Steps[cluster](awaitApproval{&approvals{}})},
			{Name: "nodes", Retry: process.DefaultRetry(), Steps: process.Steps[cluster](createNodes{})},
		},
	}

	engine, err := process.NewEngine(store, process.DefaultConfig(), clock.RealClock{}, logging.Discard(), create)
	if err != nil {
		panic(err)
	}

	// The caller accepts the operation in its own transaction.
	payload, err := json.Marshal(cluster{})
	if err != nil {
		panic(err)
	}

	err = db.InTx(ctx, func(tx storage.Tx) error {
		err := store.Accept(ctx, tx, process.New{
			ID: "operation-1", Kind: "create", InstanceID: "cluster-1", Payload: payload, At: time.Now(),
		})

		return err
	})
	if err != nil {
		panic(err)
	}

	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()

	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()

	for record := (process.Record{}); !record.State.Terminal(); <-poll.C {
		if record, err = store.Get(ctx, db.Reader(), "operation-1"); err != nil {
			panic(err)
		}
	}

	stop()

	if err := <-ended; err != nil {
		panic(err)
	}

	timeline, err := store.Timeline(context.Background(), "operation-1")
	if err != nil {
		panic(err)
	}

	for _, entry := range timeline {
		if entry.Step != "" {
			fmt.Printf("%s: %s is %s\n", entry.Stage, entry.Step, entry.Outcome)
		}
	}

	// Output:
	// approval: Await_Approval is waiting
	// approval: Await_Approval is done
	// nodes: Create_Nodes is done
}
