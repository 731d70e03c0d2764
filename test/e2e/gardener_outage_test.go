//go:build garden

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

// TestGardenerOutage blocks the connection from the Provisioner to Gardener. `ebctl operation explain` must name the cause, and
// the operations must continue when Gardener is available again.
func TestGardenerOutage(t *testing.T) {
	t.Parallel()

	const instances = 6

	began := time.Now()
	p := startPrograms(t, sharedGarden(t, "simulated"))
	p.toGarden.block(true)

	cut := time.Now()

	operations := map[string]string{}
	for i := range instances {
		id := fmt.Sprintf("cut-off-%d", i)
		operations[id] = p.Create(id, harness.PlanAWS)
	}

	for _, operation := range operations {
		p.Until("the explanation", func() bool {
			return strings.Contains(p.explain(operation), "Gardener is unavailable")
		})
	}

	repaired := time.Now()

	p.toGarden.block(false)

	for id := range operations {
		p.WantSucceeded(id)
	}

	t.Logf("ready after %s, all explained after %s, all done %s after Gardener was available again",
		cut.Sub(began).Round(time.Millisecond), repaired.Sub(cut).Round(time.Millisecond), time.Since(repaired).Round(time.Millisecond))

	if shoots := p.shoots(); len(shoots) != instances {
		t.Errorf("got %d Shoots, want %d", len(shoots), instances)
	}
}
