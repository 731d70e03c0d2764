package service_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// lines are the log lines of a service.
type lines chan *logrus.Entry

func (lines) Levels() []logrus.Level { return logrus.AllLevels }

func (l lines) Fire(entry *logrus.Entry) error {
	l <- entry

	return nil
}

// running starts a broker, runs the test with its address and its log, and stops the broker.
func running(t *testing.T, config service.Config, test func(address string, log lines)) {
	t.Helper()

	logger, _ := logtest.NewNullLogger()
	log := make(lines, 1000)
	logger.AddHook(log)

	broker, err := service.New(t.Context(), config, logger)
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- broker.Run(ctx) }()

	test(broker.Address(), log)
	stop()

	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestKeyRotation follows docs/operator/keys.md, and restarts the broker for each step.
func TestKeyRotation(t *testing.T) {
	old, next := secret.NewKey("k1"), secret.NewKey("k2")
	config := usable(t)
	config.Database.SecretKeys = old
	stored(t, config, old)

	for _, keys := range []secret.String{old + "," + next, next + "," + old} {
		config.Database.SecretKeys = keys

		running(t, config, func(_ string, log lines) {
			waitFor(t, log, "no row is sealed with this key")
		})
	}

	config.Database.SecretKeys = next

	running(t, config, func(address string, _ lines) {
		response, err := http.Get("http://" + address + "/runtimes?instance_id=one")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()

		var list struct {
			Count int `json:"count"`
		}

		if err := json.NewDecoder(response.Body).Decode(&list); err != nil || response.StatusCode != http.StatusOK || list.Count != 1 {
			t.Errorf("the instance is not readable without the old key: status %d, %d instances found, %v", response.StatusCode, list.Count, err)
		}
	})
}

func stored(t *testing.T, config service.Config, key secret.String) {
	t.Helper()

	keys, err := secret.ParseKeyring(key)
	if err != nil {
		t.Fatal(err)
	}

	db, err := storage.Open(t.Context(), storage.Config{Driver: storage.DriverSQLite, Path: config.Database.Path})
	if err != nil {
		t.Fatal(err)
	}

	defer func() { // the broker needs the lock of the file
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()

	operationStore, err := operations.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	instanceStore, err := instances.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	now := time.Now()

	if err := db.InTx(t.Context(), func(tx storage.Tx) error {
		if err := storagetest.Insert(t.Context(), tx, instanceStore, environment.Instance{ID: "one", ShootName: "c-one", CreatedAt: now, UpdatedAt: now}); err != nil {
			return err
		}

		if err := operationStore.Accept(t.Context(), tx, process.New{
			ID: "operation", Kind: environment.KindProvision, InstanceID: "one", Payload: json.RawMessage(`{}`), At: now,
		}); err != nil {
			return err
		}

		_, err := operationStore.Cancel(t.Context(), tx, "one", "the test is over", now)

		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until the service has logged the text.
func waitFor(t *testing.T, log lines, text string) {
	t.Helper()

	for {
		select {
		case entry := <-log:
			if strings.HasPrefix(entry.Message, text) {
				return
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("the log lacks %q", text)
		}
	}
}
