package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// listen runs the notifier until the test ends. It returns a channel that receives the wake-ups.
func listen(t *testing.T, db *storage.DB) (notifier *storage.Notifier, woken <-chan struct{}) {
	t.Helper()

	notifier = db.NewNotifier(logging.Discard())
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	wakes, ended := make(chan struct{}, 1), make(chan error, 1)

	go func() {
		ended <- notifier.Run(ctx, func() {
			select {
			case wakes <- struct{}{}:
			default: // already pending
			}
		})
	}()

	t.Cleanup(func() {
		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	return notifier, wakes
}

func TestNotificationWakesTheOtherReplica(t *testing.T) {
	config := postgrestest.Database(t)
	notifier, _ := listen(t, storagetest.Open(t, config))
	_, woken := listen(t, storagetest.Open(t, config))

	again := time.NewTicker(50 * time.Millisecond) // because a notification is lost if the other replica is not listening yet
	defer again.Stop()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	for {
		notifier.Notify()

		select {
		case <-woken:
			return
		case <-again.C:
		case <-ctx.Done():
			t.Fatal("the other replica is not woken")
		}
	}
}

func TestNotifierWithSQLite(t *testing.T) {
	notifier, woken := listen(t, storagetest.SQLite(t))

	for range 3 {
		notifier.Notify() // must not block
	}

	select {
	case <-woken:
		t.Error("a listener was woken unexpectedly")
	default:
	}
}
