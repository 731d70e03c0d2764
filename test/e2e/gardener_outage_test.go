//go:build garden

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestOutageOfGardener has the Provisioner cut off from Gardener: whoever asks the broker reads why, and all goes on once the road is free.
func TestOutageOfGardener(t *testing.T) {
	t.Parallel()

	const instances = 6

	began := time.Now()
	w := newWorld(t, realGarden(t, "--runtimes=shared", "--cluster-creation=1s"))
	w.road.block(true)

	cut := time.Now()

	operations := map[string]string{}
	for i := range instances {
		id := fmt.Sprintf("cut-off-%d", i)
		operations[id] = w.create(id, planAWS)
	}

	for _, operation := range operations {
		w.until("the reason", func() bool {
			return strings.Contains(explain(t, w.platform, operation), "Gardener is unavailable")
		})
	}

	repaired := time.Now()

	w.road.block(false)

	for id := range operations {
		w.succeeded(id)
	}

	t.Logf("ready after %s, all told after %s; all done %s after Gardener was back",
		cut.Sub(began).Round(time.Millisecond), repaired.Sub(cut).Round(time.Millisecond), time.Since(repaired).Round(time.Millisecond))

	if shoots := w.shoots(); len(shoots) != instances {
		t.Errorf("there are %d Shoots, want %d", len(shoots), instances)
	}
}
