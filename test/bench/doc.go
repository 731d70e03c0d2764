// Package bench measures the system: the real broker as a program, on a PostgreSQL server that syncs its commits to disk, with a
// simulated Provisioner and its own load. A figure that depends on the machine is compared to a floor, the bare work on the same
// machine, measured in the same round. The result is the page docs/operator/benchmarks.md.
//
//	go test ./test/bench -bench /accept -v -args -rounds 1
//
// measures one scenario and logs every sample. Scenarios have no time limits of their own and judge nothing: the page shows which
// figures reach their targets. Each scenario is a Go benchmark that reports its medians as metrics, so benchstat compares two
// commits.
//
// A new figure is a call of scope.add in its scenario. A new scenario is a function, listed in scenarios.
package bench
