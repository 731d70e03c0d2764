package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/environment-broker/environment-broker/internal/audit/delivery"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestAuditChainSurvivesKills kills replicas of the broker with SIGKILL immediately after they have accepted an order, before the
// order's entry is in the hash chain. The chain must become complete and stay valid, and a collector must receive all records in
// order.
func TestAuditChainSurvivesKills(t *testing.T) {
	t.Parallel()

	replicas := map[string]int{"sqlite": 1, "postgres": 2}

	for name, database := range map[string]harness.Database{"sqlite": harness.SQLite, "postgres": harness.Postgres} {
		t.Run(name, func(t *testing.T) {
			program, rows := harness.Build(t, "broker"), harness.DatabaseVariables(database(t, "broker"))
			delivered := startCollector(t)
			addresses := []string{}
			running := []*harness.Program{}

			launch := func(number int) *harness.Program {
				return harness.Launch(t, append(rows, "APP_ADDRESS="+addresses[number], "APP_STATUS_ADDRESS="+harness.FreeAddress(t),
					"APP_AUTH_BASIC_USERS="+harness.User+":"+harness.Password+":osb+admin", "APP_SHUTDOWN_DELAY=0s", "APP_WORKERS=0",
					"APP_AUDIT_DELIVERY_URL="+delivered.url, "APP_AUDIT_DELIVERY_TOKEN="+collectorToken,
					"APP_PROVISIONER_URL=http://"+harness.FreeAddress(t)+"/graphql"), program)
			}

			for number := range replicas[name] {
				addresses = append(addresses, harness.FreeAddress(t))
				running = append(running, launch(number))
			}

			const rounds = 6

			for round := range rounds {
				number := round % len(running)
				client := newPlatform(t, "http://"+addresses[number])
				client.Until("the broker to start", client.reachable)
				client.Send(http.MethodPut, harness.InstancePath(fmt.Sprintf("i%d", round))+harness.Incomplete, harness.Order(harness.PlanAWS), http.StatusAccepted)
				running[number].Kill()
				running[number] = launch(number)
			}

			client := newPlatform(t, "http://"+addresses[0])
			client.Until("the broker to start", client.reachable)

			// A killed replica's lease ends after ten seconds. Then, another replica completes the chain.
			const valid = "true 0"

			client.Until("a complete chain", func() bool {
				return strings.TrimSpace(client.ebctl("audit", "verify", "-o", "jsonpath={.valid} {.pending}")) == valid
			})

			if got := client.ebctl("audit", "export"); strings.Count(got, `"source":"operation"`) != rounds {
				t.Errorf("want a record for each of the %d operations, got\n%s", rounds, got)
			}

			client.Until("the delivery of all records", func() bool { return delivered.operations() == rounds })
			delivered.check(t)
		})
	}
}

const collectorToken = "m4rk3d"

// auditCollector is an HTTP server that receives audit logs.
type auditCollector struct {
	url string

	mutex    sync.Mutex
	messages []delivery.Message
}

func startCollector(t *testing.T) *auditCollector {
	t.Helper()

	c := &auditCollector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mutex.Lock()
		defer c.mutex.Unlock()

		decoder := json.NewDecoder(r.Body)

		for {
			var message delivery.Message
			if decoder.Decode(&message) != nil {
				break
			}

			c.messages = append(c.messages, message)
		}

		if r.Header.Get("Authorization") != "Bearer "+collectorToken {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)

	c.url = server.URL

	return c
}

// operations returns the number of different operations that were received.
func (c *auditCollector) operations() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	different := map[string]bool{}

	for _, message := range c.messages {
		if message.Source == "operation" {
			different[message.ID] = true
		}
	}

	return len(different)
}

// check fails the test if a record number is missing. Numbers may be repeated.
func (c *auditCollector) check(t *testing.T) {
	t.Helper()

	c.mutex.Lock()
	defer c.mutex.Unlock()

	highest := int64(0)

	for _, message := range c.messages {
		if message.Number > highest+1 {
			t.Errorf("number %d follows %d", message.Number, highest)
		}

		highest = max(highest, message.Number)
	}
}

// reachable reports whether the broker responds.
func (p platform) reachable() bool {
	reply, err := p.Do(harness.Call{Method: http.MethodGet, Path: "/v2/catalog"})

	return err == nil && reply.Status == http.StatusOK
}
