//go:build garden

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

// TestGardenerOutage cuts the Provisioner off from Gardener. The broker explains why operations wait. They continue when Gardener is
// available again.
func TestGardenerOutage(t *testing.T) {
	t.Parallel()

	const instances = 6

	began := time.Now()
	w := startPrograms(t, localGarden(t, "--runtimes=shared", "--cluster-creation=1s"))
	w.toGarden.block(true)

	cut := time.Now()

	operations := map[string]string{}
	for i := range instances {
		id := fmt.Sprintf("cut-off-%d", i)
		operations[id] = w.Create(id, harness.PlanAWS)
	}

	for _, operation := range operations {
		w.Until("the reason", func() bool {
			return strings.Contains(w.explain(operation), "Gardener is unavailable")
		})
	}

	repaired := time.Now()

	w.toGarden.block(false)

	for id := range operations {
		w.WantSucceeded(id)
	}

	t.Logf("ready after %s, all explained after %s, all done %s after Gardener was available again",
		cut.Sub(began).Round(time.Millisecond), repaired.Sub(cut).Round(time.Millisecond), time.Since(repaired).Round(time.Millisecond))

	if shoots := w.shoots(); len(shoots) != instances {
		t.Errorf("got %d Shoots, want %d", len(shoots), instances)
	}
}
