package ha

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// customerCount is the number of customers who order at the same time.
	customerCount = 6
	// pollInterval is the pause between two requests of a customer.
	pollInterval = 200 * time.Millisecond
)

// accepted is a request to which a broker has responded with 202.
type accepted struct{ instance, operation string }

// customers create and delete instances until they are stopped. Each repeats a request until a broker accepts it.
type customers struct {
	*services

	stop    context.CancelFunc
	running sync.WaitGroup

	mutex    sync.Mutex
	accepted []accepted
	// acceptedAt and endedAt are the times of the last acceptance and of the last end of an operation.
	acceptedAt, endedAt time.Time
}

// startCustomers starts a group of customers.
func (s *services) startCustomers() *customers {
	s.rounds++
	ctx, stop := context.WithCancel(context.WithoutCancel(s.Context()))
	c := &customers{services: s, stop: stop}
	s.Cleanup(stop)

	for number := range customerCount {
		c.running.Go(func() {
			for order := 0; ctx.Err() == nil; order++ {
				id := fmt.Sprintf("i-%d-%d-%d", s.rounds, number, order)
				if err := c.order(id, order%2 == 1); err != nil {
					c.Errorf("%s: %v", id, err)

					return
				}
			}
		})
	}

	return c
}

// order creates an instance and, if deletes is true, deletes it again.
func (c *customers) order(id string, deletes bool) error {
	created, err := c.send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, harness.Order(harness.PlanAWS),
		http.StatusAccepted, http.StatusOK)
	if err == nil {
		err = c.wait(id, created)
	}

	if err != nil {
		return err
	}

	if !deletes {
		c.mutex.Lock()
		defer c.mutex.Unlock()

		c.live = append(c.live, id)

		return nil
	}

	deleted, err := c.send(http.MethodDelete, harness.DeletionPath(id, harness.PlanAWS), nil, http.StatusAccepted, http.StatusGone)
	if err != nil || deleted.Status == http.StatusGone {
		return err
	}

	return c.wait(id, deleted)
}

// wait records an accepted request and waits until its operation has succeeded.
func (c *customers) wait(id string, reply harness.Reply) error {
	operation := reply.Text("operation")
	if reply.Status == http.StatusAccepted {
		c.mutex.Lock()
		c.accepted, c.acceptedAt = append(c.accepted, accepted{id, operation}), time.Now()
		c.mutex.Unlock()
	}

	for {
		got, err := c.send(http.MethodGet, lastOperation(id, operation), nil, http.StatusOK)
		if err != nil {
			return err
		}

		switch got.Text("state") {
		case "in progress":
			<-time.After(pollInterval)
		case "succeeded":
			c.mutex.Lock()
			defer c.mutex.Unlock()

			c.endedAt = time.Now()

			return nil
		default:
			return fmt.Errorf("operation %s ended with %v", operation, got.Raw)
		}
	}
}

func lastOperation(id, operation string) string {
	path := harness.InstancePath(id) + "/last_operation"
	if operation != "" {
		path += "?operation=" + operation
	}

	return path
}

// send sends a request to the brokers in turn until the database is available. It returns an error if the response's status is not
// in want.
func (c *customers) send(method, path string, body any, want ...int) (harness.Reply, error) {
	deadline := time.Now().Add(harness.Patience)

	for attempt := 0; ; attempt++ {
		client := harness.Client{TB: c.TB, Endpoint: c.brokers[attempt%len(c.brokers)].Endpoint}

		got, err := client.Try(method, path, body)

		switch {
		case err == nil && slices.Contains(want, got.Status):
			return got, nil
		case err == nil && got.Status != http.StatusServiceUnavailable:
			return got, fmt.Errorf("%s %s returned %d %s", method, path, got.Status, got.Raw)
		case time.Now().After(deadline):
			return got, fmt.Errorf("%s %s still fails after %s: %d %s %w", method, path, harness.Patience, got.Status, got.Raw, err)
		}

		<-time.After(pollInterval)
	}
}

// waitForWork waits until, later than after, at least one request was accepted and at least one operation ended. It returns the
// time at which both conditions were met.
func (c *customers) waitForWork(after time.Time) time.Time {
	c.Helper()

	var resumed time.Time

	harness.Until(c, "the services to resume work", func() bool {
		c.mutex.Lock()
		defer c.mutex.Unlock()

		if !c.acceptedAt.After(after) || !c.endedAt.After(after) {
			return false
		}

		resumed = time.Now()

		return true
	})

	return resumed
}

// lastEnd returns the time at which the most recent operation ended.
func (c *customers) lastEnd() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	return c.endedAt
}

// finish stops the customers and compares the instances that they have with the rows of the services and the Shoots.
func (c *customers) finish() {
	c.Helper()
	c.stop()
	c.running.Wait()
	c.Logf("%d accepted requests, %d instances since the start", len(c.accepted), len(c.live))

	for _, each := range c.accepted {
		found := c.column(c.brokerDB, `SELECT state FROM operations WHERE id = '`+each.operation+`'`)
		if !slices.Equal(found, []string{"succeeded"}) {
			c.Errorf("%s: the accepted operation %s is %v in the database, want succeeded", each.instance, each.operation, found)
		}
	}

	c.checkClusters()
}
