package bench

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/harness"
)

// measureProvisioner measures a Provisioner that receives many orders at the same time. The Provisioner and the fake
// garden run in the benchmark's process.
func measureProvisioner(s *scope) {
	const (
		count    = 500
		creation = 5 * time.Second
	)

	database := s.postgres.Database(s)

	garden, calls, err := harness.StartGarden(s, creation).Counted()
	if err != nil {
		s.Fatal(err)
	}

	settings := harness.ProvisionerSettings(harness.PostgresSettings(database, "provisioner"))
	url, _ := harness.StartProvisioner(s, garden, settings, logging.Discard())

	debug.FreeOSMemory()

	before, _ := s.memoryOf(os.Getpid())
	start := time.Now()

	s.orderRuntimes(url, count)

	e := &environment{scope: s, db: open(s, s.postgres, database.Name)}
	e.waitFor(allSucceeded, count)

	took := time.Since(start)
	verbs := calls.Counts()

	debug.FreeOSMemory()

	after, peak := s.memoryOf(os.Getpid())

	total := 0
	for _, each := range verbs {
		total += each
	}

	per := func(calls int) float64 { return float64(calls) / count }
	name := fmt.Sprintf("%d runtimes at once, Provisioner and a fake garden whose clusters take 5 s (one run): ", count)

	s.add(report.Figure{Name: name + "all done", Unit: "s"}, took.Seconds())
	s.add(report.Figure{
		Name: name + "calls to Gardener per runtime", AtMost: 12, // Polling every second would need more calls.
		Note: fmt.Sprintf("get %.1f, patch %.1f, create %.1f", per(verbs["get"]), per(verbs["patch"]), per(verbs["create"])),
	}, per(total))
	s.add(report.Figure{Name: name + "lists and watches for all of them"}, float64(verbs["list"]+verbs["watch"]))
	s.add(report.Figure{Name: name + "memory per runtime, including the garden's", Unit: "kB"}, (after-before)/count/1000)
	s.add(report.Figure{Name: name + "resident memory at its peak, including garden and load", Unit: "MiB"}, peak/mebibyte)
}

// orderRuntimes orders count runtimes with concurrent requests.
func (s *scope) orderRuntimes(url string, count int) {
	client, err := provisionerclient.New(provisionerclient.Options{URL: url})
	s.check(err)

	var requests errgroup.Group

	requests.SetLimit(clients)

	for i := range count {
		requests.Go(func() error {
			_, err := client.ProvisionRuntime(s.Context(), provisionerclient.Caller{Tenant: "bench"}, harness.SmallRuntime("c-"+strconv.Itoa(i)))

			return err
		})
	}

	s.check(requests.Wait())
}
