// Package bench measures the broker and the Provisioner. The broker runs as a separate process, on a PostgreSQL server that syncs
// its commits to disk, with a simulated Provisioner. A figure that depends on the machine is compared with a floor: the cost of
// the minimal work on the same machine, measured in the same round. The result is the page docs/operator/benchmarks.md. The
// command
//
//	go test ./test/bench -bench /accept -v -args -rounds 1
//
// measures one scenario and logs every sample. Scenarios have no time limits and do not fail if a figure misses its target; the page
// shows which figures reach their targets. Each scenario is a Go benchmark that reports its medians as metrics, so benchstat can
// compare two commits.
//
// To add a figure, call scope.add in its scenario. To add a scenario, write a function and list it in scenarios.
package bench
