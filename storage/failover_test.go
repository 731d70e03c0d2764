package storage_test

import (
	"context"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// writes returns one call for each way to write with a DB. Each call adds 1 to the counter.
func writes(db *storage.DB) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"in a transaction": func(ctx context.Context) error {
			return db.InTx(ctx, func(tx storage.Tx) error { return add(ctx, tx) })
		},
		"without a transaction": func(ctx context.Context) error { return add(ctx, db.Writer()) },
		"that returns a value": func(ctx context.Context) error {
			_, err := storage.Select[int](ctx, db.Writer(), `UPDATE counter SET value = value + ? RETURNING value`, 1)

			return err
		},
	}
}

// TestFailover makes the host name resolve to a standby, and then promotes the standby. Writes must fail as unavailable until
// the promotion.
func TestFailover(t *testing.T) {
	server := postgrestest.Own(t)
	db := storagetest.Open(t, server.Database(t))
	execute(t, db, createCounter, zero)

	if err := server.StartStandby(); err != nil {
		t.Fatal(err)
	}

	for how, write := range writes(db) {
		if err := write(t.Context()); !storage.IsUnavailable(err) {
			t.Errorf("a write %s to a standby returns %v", how, err)
		}
	}

	if err := db.Ping(t.Context()); !storage.IsUnavailable(err) {
		t.Errorf("a replica that reaches a standby must not be ready, got %v", err)
	}

	if err := server.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}

	for how, write := range writes(db) {
		if err := write(t.Context()); err != nil {
			t.Errorf("a write %s to the promoted standby returns %v", how, err)
		}
	}
}

// TestReadOnlyConnectionsAreDropped makes a server read-only temporarily, as operators do when a disk is nearly full. Sessions
// that start during that time stay read-only, so their connections must be dropped.
func TestReadOnlyConnectionsAreDropped(t *testing.T) {
	config := postgrestest.Database(t)
	setting := `ALTER DATABASE ` + config.Name + ` SET default_transaction_read_only = `

	operator := storagetest.Open(t, config)
	execute(t, operator, createCounter, zero, setting+`on`)

	db := storagetest.Open(t, config)
	ways := writes(db)

	delete(ways, "in a transaction") // BEGIN declares the transaction read-write, which overrides the setting

	for how, write := range ways {
		if err := write(t.Context()); !storage.IsUnavailable(err) {
			t.Errorf("a write %s in a read-only session returns %v", how, err)
		}
	}

	execute(t, operator, setting+`off`)

	for how, write := range ways {
		if err := write(t.Context()); err != nil {
			t.Errorf("a write %s in a new session returns %v", how, err)
		}
	}
}

// TestHostList lists a standby before the primary, and then makes the primary a standby too.
func TestHostList(t *testing.T) {
	first, second := postgrestest.Own(t), postgrestest.Own(t)
	config, other := first.Database(t), second.Database(t)
	config.Host, config.Port = config.Host+","+other.Host, config.Port+","+other.Port
	config.Name = "postgres" // exists on both servers

	if err := first.StartStandby(); err != nil {
		t.Fatal(err)
	}

	db := storagetest.Open(t, config)
	execute(t, db, createCounter, zero)

	if err := second.StartStandby(); err != nil {
		t.Fatal(err)
	}

	for how, write := range writes(db) {
		if err := write(t.Context()); !storage.IsUnavailable(err) {
			t.Errorf("a write %s without a primary returns %v", how, err)
		}
	}

	for _, server := range []*postgrestest.Server{first, second} { // the databases are dropped when the test ends
		if err := server.Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
