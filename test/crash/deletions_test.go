package crash

import (
	"net/http"
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process/crashtest"
)

// deletionFaults is which part of their faults is played of deletions that end what seldom runs.
const deletionFaults = 9

// TestDeletionsOfTrials has an instance deleted while its runtime is taken away, or made anew. What can go wrong in each of these is played
// in whole by their own scenes.
func TestDeletionsOfTrials(t *testing.T) {
	t.Parallel()

	ground := newGround(t)
	scene := newBrokerScene(t, ground, ground.scratch)
	remove := func(w *brokerWorld, play *brokerPlay) []string {
		id := w.askFor(http.MethodDelete, instance, planTrial, `{}`)
		play.Await(id)

		return []string{id}
	}

	crashtest.Sample(t, deletionFaults,
		scene("during-suspension", environment.KindDeprovision, true, func(w *brokerWorld, play *brokerPlay) []string {
			play.Await(w.orderTrial())
			play.InjectFaults()
			w.change(`"context": {"active": false}`)
			play.Sleep(change)

			return remove(w, play)
		}),
		scene("during-resumption", environment.KindDeprovision, true, func(w *brokerWorld, play *brokerPlay) []string {
			play.Await(w.orderTrial())
			play.Await(w.change(`"context": {"active": false}`))
			play.InjectFaults()
			w.change(`"context": {"active": true}`)
			play.Sleep(creation)

			return remove(w, play)
		}),
	)
}
