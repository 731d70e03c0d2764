package broker_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// together sends the same request several times concurrently and returns the responses.
func (b *fixture) together(times int, same call) []reply {
	b.Helper()

	return b.togetherEach(times, func(int) call { return same })
}

// togetherEach sends different requests concurrently and returns the responses.
func (b *fixture) togetherEach(times int, request func(n int) call) []reply {
	b.Helper()

	var (
		senders sync.WaitGroup
		replies = make([]reply, times)
		start   = make(chan struct{})
	)

	for i := range times {
		senders.Go(func() {
			<-start

			replies[i] = b.send(request(i))
		})
	}

	close(start)
	senders.Wait()

	for i, got := range replies {
		b.checkAnswer(request(i), got)
	}

	return replies
}

// results returns the distinct pairs of status and operation in the responses.
func results(replies []reply) []string {
	var found []string

	for _, got := range replies {
		found = append(found, got.Raw)
	}

	slices.Sort(found)

	return slices.Compact(found)
}

func TestConcurrentEqualRequests(t *testing.T) {
	const times = 8

	onEach(t, func(b *fixture) {
		creation := call{method: "PUT", path: path(instanceID) + "?accepts_incomplete=true", body: order()}
		replies := b.together(times, creation)

		if got := results(replies); len(got) != 1 || replies[0].Status != 202 {
			b.Fatalf("D10: equal orders have different responses: %v", got)
		}

		if len(b.carried(instanceID)) != 1 || b.wakes.Load() != 1 {
			b.Errorf("D10: equal orders started %d operations", len(b.carried(instanceID)))
		}

		deletion := call{method: "DELETE", path: path(instanceID) + "?accepts_incomplete=true" + ids}
		replies = b.together(times, deletion)

		if got := results(replies); len(got) != 1 || replies[0].Status != 202 {
			b.Fatalf("J4: equal deletions have different responses: %v", got)
		}

		if len(b.carried(instanceID)) != 2 {
			b.Errorf("J4: equal deletions started %d operations", len(b.carried(instanceID))-1)
		}
	})
}

func TestConcurrentDifferentOrders(t *testing.T) {
	onEach(t, func(b *fixture) {
		var (
			senders  sync.WaitGroup
			statuses = make([]int, 6)
		)

		for i := range statuses {
			senders.Go(func() {
				body := order(with("parameters", map[string]any{"autoScalerMin": 3 + i}))
				statuses[i] = b.send(call{method: "PUT", path: path(instanceID) + "?accepts_incomplete=true", body: body}).Status
			})
		}

		senders.Wait()
		slices.Sort(statuses)

		if diff := cmp.Diff([]int{202, 409, 409, 409, 409, 409}, statuses); diff != "" {
			b.Errorf("statuses, of which only one is a success: -want +got\n%s", diff)
		}
	})
}
