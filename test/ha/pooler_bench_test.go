package ha

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// BenchmarkPooler compares a broker that connects to PostgreSQL directly with one that uses PgBouncer. The brokers have no
// workers, so only requests use the database.
func BenchmarkPooler(b *testing.B) {
	server, err := postgrestest.Launch()
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() {
		if err := server.Remove(); err != nil {
			b.Error(err)
		}
	})

	for _, pooled := range []bool{false, true} {
		database := server.Database(b)
		settings := harness.BrokerSettings(harness.PostgresSettings(database, "broker"))
		settings.Engine.Workers = 0
		settings.Provisioner.URL = "http://127.0.0.1:1/graphql"

		if pooled {
			settings.Database.Pooler = newAccount(b).startPooler(database.Port, 12)
		}

		broker := harness.StartBroker(b, settings, logging.Discard())

		order, err := json.Marshal(harness.Order(harness.PlanAWS))
		if err != nil {
			b.Fatal(err)
		}

		var last atomic.Int64

		call := func(b *testing.B, send func() harness.Call, want int) {
			b.Helper()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					reply, err := broker.Do(send())
					if err != nil || reply.Status != want {
						b.Errorf("got %d %s, %v", reply.Status, reply.Raw, err)
					}
				}
			})
		}

		b.Run(fmt.Sprintf("accept/pooler=%t", pooled), func(b *testing.B) {
			call(b, func() harness.Call {
				path := harness.InstancePath(fmt.Sprintf("i-%d", last.Add(1))) + harness.Incomplete

				return harness.Call{Method: http.MethodPut, Path: path, Body: string(order)}
			}, http.StatusAccepted)
		})
		b.Run(fmt.Sprintf("last_operation/pooler=%t", pooled), func(b *testing.B) {
			call(b, func() harness.Call {
				return harness.Call{Method: http.MethodGet, Path: harness.InstancePath("i-1") + "/last_operation"}
			}, http.StatusOK)
		})
	}
}
