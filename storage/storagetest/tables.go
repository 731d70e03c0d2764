package storagetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/accounts"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/notifications"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/reports"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/sealcount"
	"github.com/environment-broker/environment-broker/storage/webhooks"
	"github.com/environment-broker/environment-broker/storage/writecheck"
)

// migrate creates the tables of the broker and the Provisioner in one database. No two tables have the same name.
func migrate(ctx context.Context, config storage.Config) (err error) {
	db, err := storage.Open(ctx, config)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	keys, err := secret.ParseKeyring(secret.NewKey("template"))
	if err != nil {
		return err
	}

	var ops *operations.Store

	for _, open := range []func() error{
		func() error { ops, err = operations.Open(ctx, db, keys); return err },
		func() error { _, err := instances.Open(ctx, db, keys); return err },
		func() error { _, err := bindings.Open(ctx, db, keys); return err },
		func() error { _, err := endpoints.Open(ctx, db, keys); return err },
		func() error { _, err := runtimes.Open(ctx, db, keys); return err },
		func() error { _, err := auditlog.Open(ctx, db, time.Hour); return err },
		func() error { _, err := reports.Open(ctx, db); return err },
		func() error { _, err := outsideobjects.Open(ctx, db, keys); return err },
		func() error { _, err := instanceevents.Open(ctx, db); return err },
		func() error { _, err := leftovers.Open(ctx, db); return err },
		func() error { _, err := notifications.Open(ctx, db); return err },
		func() error { _, err := orchestrations.Open(ctx, db, ops); return err },
		func() error { _, err := eventlog.Open(ctx, db); return err },
		func() error { _, err := webhooks.Open(ctx, db, keys); return err },
		func() error { _, err := accounts.Open(ctx, db, clock.RealClock{}); return err },
		func() error { _, err := writecheck.Open(ctx, db, clock.RealClock{}); return err },
		func() error {
			_, err := sealcount.Open(ctx, sealcount.Options{
				DB: db, Keys: keys, Clock: clock.RealClock{}, Log: logging.Discard(), Metrics: prometheus.NewRegistry(),
			})

			return err
		},
	} {
		if err := open(); err != nil {
			return err
		}
	}

	return nil
}

// sqliteFile returns the content of a SQLite file with the tables of both services. The first call in a test binary creates it.
var sqliteFile = sync.OnceValues(func() (content []byte, err error) {
	folder, err := os.MkdirTemp("", "template")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the template of SQLite files: %w", err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()

	if err := migrate(context.Background(), fileIn(folder)); err != nil {
		return nil, err
	}

	// The file contains all changes, because SQLite merges and removes the write-ahead log when the last connection is closed.
	return os.ReadFile(filepath.Join(folder, fileName))
})
