package hostile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

// plain returns an order of about size bytes for an unknown plan. Its other fields are ordinary JSON that the broker ignores.
func plain(size int) string {
	var body bytes.Buffer

	body.WriteString(`{"service_id":"` + harness.ServiceID + `","plan_id":"unknown"`)

	for i := 0; body.Len() < size && i < 1000; i++ {
		text := strings.Repeat("x", max(20, size/1000-80))
		fmt.Fprintf(&body, `,"field-%d":{"name":%q,"enabled":true,"zones":["eu-central-1a"]}`, i, text)
	}

	body.WriteString("}")

	return body.String()
}

// cpu returns the CPU time that this process uses during the call. Both services and the client run in this process.
func cpu(tb testing.TB, call func()) time.Duration {
	tb.Helper()

	used := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			tb.Fatal(err)
		}

		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}

	before := used()

	call()

	return used() - before
}

// BenchmarkCost compares the CPU time of each hostile request with a plain request of the same size to the same route, and
// reports the highest ratios.
func BenchmarkCost(b *testing.B) {
	s := start(b)

	type cost struct {
		name  string
		ratio float64
	}

	var costs []cost

	const repetitions = 5

	measure := func(name string, endpoint harness.Endpoint, hostile, plain harness.Call) {
		var used [2]time.Duration

		for range repetitions {
			for i, call := range []harness.Call{hostile, plain} {
				used[i] += cpu(b, func() {
					if _, err := endpoint.Do(call); err != nil {
						b.Fatal(err)
					}
				})
			}
		}

		costs = append(costs, cost{fmt.Sprintf("%s (%d bytes, %s)", name, len(hostile.Body), used[0]/repetitions), float64(used[0]) / float64(used[1])})
	}

	for b.Loop() {
		costs = nil

		for name, body := range bodies() {
			for _, call := range []harness.Call{
				{Method: http.MethodPut, Path: harness.InstancePath("new") + harness.Incomplete},
				{Method: http.MethodPost, Path: harness.InstancePath("new") + "/validate"},
				{Method: http.MethodPatch, Path: harness.InstancePath(known) + harness.Incomplete},
			} {
				usual := call
				call.Body, usual.Body = body, plain(len(body))

				measure(call.Method+" "+name, s.Endpoint, call, usual)
			}
		}

		for name, query := range queries() {
			call := graphQL(b, query)
			usual := call
			usual.Body = `{"query":"{ __typename }","variables":` + plain(len(call.Body)) + `}`

			measure("GraphQL "+name, s.provisioner, call, usual)
		}
	}

	slices.SortFunc(costs, func(a, b cost) int { return int(1000 * (b.ratio - a.ratio)) })

	for _, cost := range costs[:8] {
		b.Logf("%.1f times a plain request: %s", cost.ratio, cost.name)
	}

	b.ReportMetric(costs[0].ratio, "plain-requests/worst")
}

// queries returns hostile GraphQL requests, by name.
func queries() map[string]string {
	all := map[string]string{}

	for name, literal := range literals() {
		all[name] = "{ runtimeStatus(id: " + literal + ") { __typename } }"
	}

	for name, selection := range selections() {
		all[name] = `{ runtimeStatus(id: "x\u200b") ` + selection + " }"
	}

	return all
}

// BenchmarkNeighbour compares the p99 latency of a client that polls an operation, both alone and while another client sends hostile
// requests, one at a time. It alternates between the two measurements.
func BenchmarkNeighbour(b *testing.B) {
	s := start(b)

	var requests []harness.Call
	for _, body := range bodies() {
		requests = append(requests, harness.Call{Method: http.MethodPatch, Path: harness.InstancePath(known) + harness.Incomplete, Body: body})
	}

	poll := harness.Call{Method: http.MethodGet, Path: harness.InstancePath(known) + "/last_operation"}

	const polls = 500

	var latencies [2][]time.Duration

	for b.Loop() {
		for hostile := range 2 {
			stop, stopped := make(chan struct{}), make(chan struct{})

			go func() {
				defer close(stopped)

				for i := 0; hostile == 1; i++ {
					select {
					case <-stop:
						return
					default:
						_, _ = s.Do(requests[i%len(requests)]) // the poll below fails the benchmark if the broker does not respond
					}
				}
			}()

			for range polls {
				begin := time.Now()

				if _, err := s.Do(poll); err != nil {
					b.Fatal(err)
				}

				latencies[hostile] = append(latencies[hostile], time.Since(begin))
			}

			close(stop)
			<-stopped
		}
	}

	var p99 [2]time.Duration

	for i, all := range latencies {
		slices.Sort(all)
		p99[i] = all[len(all)*99/100]
	}

	b.ReportMetric(float64(p99[0].Microseconds())/1000, "quiet-p99-ms")
	b.ReportMetric(float64(p99[1].Microseconds())/1000, "hostile-p99-ms")
	b.ReportMetric(float64(p99[1])/float64(p99[0]), "hostile/quiet")
}

// TestPlain checks that the result of plain is valid JSON of about the given size.
func TestPlain(t *testing.T) {
	t.Parallel()

	for _, size := range []int{100, 10_000, 1_000_000} {
		if body := plain(size); !json.Valid([]byte(body)) || len(body) < size/2 || len(body) > size*3/2+300 {
			t.Errorf("%d bytes for %d", len(body), size)
		}
	}
}
