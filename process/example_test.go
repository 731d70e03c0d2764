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

// house is the data of the example. It is stored with the operation.
type house struct {
	Permit string `json:"permit"`
	Walls  int    `json:"walls"`
}

// askForPermit is a step that waits: it asks the office until the permit is granted.
type askForPermit struct{ office *office }

func (askForPermit) Name() string { return "Ask_For_Permit" }

func (s askForPermit) Run(_ context.Context, operation process.Operation[house], _ logrus.FieldLogger,
) (process.Operation[house], time.Duration, error) {
	permit, granted := s.office.ask()
	if !granted {
		return process.Await(operation, "the office has not decided", time.Second, time.Hour)
	}

	operation.Data.Permit = permit

	return operation, 0, nil
}

// buildWalls is a step that checks whether its work is done, because it may run again after a crash.
type buildWalls struct{}

func (buildWalls) Name() string { return "Build_Walls" }

func (buildWalls) Run(_ context.Context, operation process.Operation[house], _ logrus.FieldLogger,
) (process.Operation[house], time.Duration, error) {
	for operation.Data.Walls < 4 {
		operation.Data.Walls++
	}

	return operation, 0, nil
}

// office grants a permit at the second request.
type office struct{ asked int }

func (o *office) ask() (string, bool) {
	o.asked++

	return "permit 7", o.asked > 1
}

// A process is data: stages in order, each with its steps. A step that waits has a stage of its own, so that earlier steps do not run
// again.
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

	build := process.Process[house]{
		Kind:  "build",
		Limit: time.Hour,
		Stages: []process.Stage[house]{
			{Name: "permit", Retry: process.DefaultRetry(), Steps: process.Steps[house](askForPermit{&office{}})},
			{Name: "walls", Retry: process.DefaultRetry(), Steps: process.Steps[house](buildWalls{})},
		},
	}

	engine, err := process.NewEngine(store, process.DefaultConfig(), clock.RealClock{}, logging.Discard(), build)
	if err != nil {
		panic(err)
	}

	// An operation is accepted in the caller's transaction.
	payload, err := json.Marshal(house{})
	if err != nil {
		panic(err)
	}

	err = db.InTx(ctx, func(tx storage.Tx) error {
		err := store.Accept(ctx, tx, process.New{
			ID: "operation-1", Kind: "build", InstanceID: "house-1", Payload: payload, At: time.Now(),
		})

		return err
	})
	if err != nil {
		panic(err)
	}

	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()

	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()

	for record := (process.Record{}); !record.State.Terminal(); <-look.C {
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
	// permit: Ask_For_Permit is waiting
	// permit: Ask_For_Permit is done
	// walls: Build_Walls is done
}
