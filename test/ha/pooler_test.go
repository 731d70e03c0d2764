package ha

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// startPooler starts PgBouncer in front of the given PostgreSQL server, with the given number of connections to each database. It
// returns the address of PgBouncer.
func (a account) startPooler(server string, connections int) (address string) {
	a.Helper()

	port := freePort(a)
	settings, users := filepath.Join(a.folder, "pgbouncer.ini"), filepath.Join(a.folder, "users.txt")
	a.write(users, `"postgres" "`+password+`"`)
	a.render("pgbouncer.ini", "pgbouncer.ini", map[string]any{"Server": server, "Port": port, "Users": users, "Size": connections})
	a.start("pgbouncer", a.program("pgbouncer"), settings)

	address = freeport.Address(port)
	harness.Until(a, "PgBouncer to start", func() bool {
		connection, err := new(net.Dialer).DialContext(a.Context(), "tcp", address)

		return err == nil && connection.Close() == nil
	})

	return address
}

// TestPooler runs the services through PgBouncer in transaction mode, under load. PgBouncer opens far fewer connections than the
// services, so consecutive transactions of a client use different connections to the server.
func TestPooler(t *testing.T) {
	server := postgrestest.Own(t)
	broker, provisioner := server.Database(t), server.Database(t)
	pooler := newAccount(t).startPooler(broker.Port, 3)
	settings := harness.PostgresSettings(broker, "broker")
	settings.Pooler = pooler

	provisionerSettings := harness.PostgresSettings(provisioner, "provisioner")
	provisionerSettings.Pooler = pooler
	s := startReplicas(t, settings, provisionerSettings)
	s.brokerDB, s.provisionerDB = storagetest.Open(t, broker), storagetest.Open(t, provisioner)

	load := s.startCustomers()
	for range 3 {
		load.waitForWork(load.lastEnd())
	}

	load.finish()

	// PgBouncer's connections serve all clients, so a statement that a client has prepared would be visible on this connection.
	prepared, err := storage.Select[string](t.Context(), storagetest.Open(t, pooled(broker, pooler)).Reader(), `SELECT name FROM pg_prepared_statements`)
	if err != nil || len(prepared) > 0 {
		t.Errorf("prepared statements on a pooled connection: %s, %v", strings.Join(prepared, ", "), err)
	}
}

func pooled(config storage.Config, pooler string) storage.Config {
	config.Pooler = pooler

	return config
}
