package ha

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestLostTail promotes an asynchronous standby that lacks the newest instances. Repeated orders of these instances must take over
// their clusters. Orders from another tenant must not take them over.
func TestLostTail(t *testing.T) {
	c := startCluster(t, false)
	s := startServices(c)

	load := s.startCustomers()
	load.waitForWork(time.Now())
	load.finish()

	former := c.waitForPrimary(server{})
	s.waitForReplicas()
	former.ToReplicas.Freeze()

	customer := &customers{services: s}

	var lost []string
	for number := range 3 {
		lost = append(lost, fmt.Sprintf("lost-%d", number))
		if err := customer.order(lost[number], false); err != nil {
			t.Fatal(err)
		}
	}

	clusters := s.shoots()

	failed := former.server()
	former.kill()
	t.Logf("%s is the primary", c.waitForPrimary(failed).Name)

	for _, id := range lost {
		if _, err := customer.send(http.MethodGet, harness.InstancePath(id), nil, http.StatusNotFound); err != nil {
			t.Fatalf("the failover has not lost %s: %v", id, err)
		}
	}

	s.steal(clusters)

	for _, id := range lost {
		repeated, err := customer.send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, harness.Order(harness.PlanAWS), http.StatusAccepted)
		if err == nil {
			err = customer.wait(id, repeated)
		}

		if err != nil {
			t.Fatal(err)
		}
	}

	s.wantEqual("Shoots after the failover", clusters, s.shoots())
	s.checkClusters()
}

// waitForReplicas waits until both standbys have replicated everything that the services have written so far.
func (s *services) waitForReplicas() {
	s.Helper()

	position := s.column(s.brokerDB, `SELECT pg_current_wal_lsn()::text`)[0]

	harness.Until(s, "the standbys to receive all changes", func() bool {
		return slices.Equal(s.column(s.brokerDB, `SELECT count(*)::text FROM pg_stat_replication WHERE flush_lsn >= '`+position+`'`), []string{"2"})
	})
}

// steal orders each cluster from the Provisioner for another tenant. Each order must fail.
func (s *services) steal(clusters []string) {
	s.Helper()

	client, err := provisionerclient.New(provisionerclient.Options{URL: s.provisioner, Timeout: harness.Patience})
	if err != nil {
		s.Fatal(err)
	}

	for _, cluster := range clusters {
		_, name, _ := strings.Cut(cluster, " ")

		input := harness.SmallRuntime(name)
		input.RuntimeInput.Labels = map[string]any{"broker_instance_id": "lost-0"}

		harness.Until(s, "the Provisioners to reach the new primary", func() bool {
			_, err = client.ProvisionRuntime(s.Context(), provisionerclient.Caller{Tenant: "thief"}, input)

			return !failure.Is(err, failure.Transient)
		})

		if failure.Of(err).Reason != failure.ReasonAlreadyExists {
			s.Errorf("the order of another tenant for %s returns %v", name, err)
		}
	}
}
