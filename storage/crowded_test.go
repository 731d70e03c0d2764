package storage_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestTooManyConnections writes while other clients use all connections that the server accepts. The writes must fail
// as unavailable, and succeed once connections are free.
func TestTooManyConnections(t *testing.T) {
	server := postgrestest.Own(t, "max_connections=20")
	db := storagetest.Open(t, server.Database(t))
	execute(t, db, createCounter, zero)

	release := server.ExhaustConnections(t)

	for how, write := range writes(db) {
		if err := write(t.Context()); !storage.IsUnavailable(err) {
			t.Errorf("without a free connection, a write %s returns %v", how, err)
		}
	}

	if err := db.Ping(t.Context()); !storage.IsUnavailable(err) {
		t.Errorf("a replica without a connection must not be ready, got %v", err)
	}

	release()

	for how, write := range writes(db) {
		if err := write(t.Context()); err != nil {
			t.Errorf("with free connections, a write %s returns %v", how, err)
		}
	}

	if got, want := counted(t, db), len(writes(db)); got != want {
		t.Errorf("%d writes are stored, but %d succeeded", got, want)
	}
}
