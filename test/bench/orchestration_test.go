package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/report"
)

// measureOrchestration measures the planning and the run of an orchestration of 10,000 instances, with a Provisioner that responds
// immediately. For comparison, it measures the commits of upgrades that are ordered one by one.
func measureOrchestration(s *scope) {
	const (
		count   = 10_000
		single  = 200
		workers = 1000

		patience, pause = 20 * time.Minute, 100 * time.Millisecond
	)

	e, copies := s.fill(count, true)
	e.broker = s.startBroker(e)

	generator := load.New(1)
	defer generator.Close()

	finished := func(upgrades int) {
		for ended, deadline := false, time.Now().Add(patience); !ended; time.Sleep(pause) {
			if e.get(&ended, `SELECT count(*) = $1 FROM operations WHERE kind = 'upgradeCluster' AND state = 'succeeded'`, upgrades); time.Now().After(deadline) {
				s.Fatalf("waited %s for %d upgrades", patience, upgrades)
			}
		}
	}

	post := func(path, body string, status int) []byte {
		return s.fetch(generator, load.Request{Method: http.MethodPost, URL: e.broker.url + path, Header: header(), Body: []byte(body), Want: status}).Body
	}

	before := e.commits()
	for i := range single {
		post("/runtimes/"+copies[i].Instance+"/upgradeCluster", `{}`, http.StatusAccepted)
	}

	finished(single)

	own := (e.commits() - before) / single

	order := fmt.Sprintf(`{"targets": {"include": [{"target": "all"}]}, "strategy": {"parallel": {"workers": %d}}}`, workers)
	start := time.Now()
	answer := post("/upgrade/cluster/plan", order, http.StatusCreated)
	planned := time.Since(start)

	var plan operatorapi.AcceptedOrchestration

	s.check(json.Unmarshal(answer, &plan))

	before, start = e.commits(), time.Now()

	post("/orchestrations/"+plan.OrchestrationID+"/apply", `{}`, http.StatusAccepted)
	finished(count + single)

	took, commits := time.Since(start), (e.commits()-before)/count
	_, peak := e.broker.memory()

	name := "orchestration of 10,000 instances (one run): "
	s.add(report.Figure{Name: name + "plan", Unit: "s", AtMost: 2}, planned.Seconds())
	s.add(report.Figure{Name: name + "commits per target beyond those of the upgrade", AtMost: 3, Note: fmt.Sprintf("the upgrade itself: %.2f", own)}, commits-own)
	s.add(report.Figure{Name: name + "resident memory at its peak", Unit: "MiB", AtMost: 120}, peak/mebibyte)
	s.add(report.Figure{Name: name + "applied to all done: upgrades/s"}, count/took.Seconds())
}
