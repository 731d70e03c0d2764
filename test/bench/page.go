package main

import (
	"fmt"
	"strings"
)

const head = `# Benchmarks

Made by ` + "`make bench`" + `, which measures the broker as a program: load, broker, PostgreSQL and a simulated Provisioner share one machine. %d clients
send requests, each waits for its answer. A floor is what the bare work costs with the same server, driver, pool, user check and log line;
it is measured in turn with the figure, and the ratio is that of two neighbours. Figures are medians of %d runs unless they say otherwise.
Those of runtimes are the Provisioner's: it, its load and a garden in memory are one process then.
[benchmark-bounds.md](benchmark-bounds.md) says what bounds the figures that have not reached what they must.

Machine: %s.

| figure | measured | floor | ratio | must reach | reached |
|---|---|---|---|---|---|
`

// render writes the page.
func render(machine machine, runs int, lines []line) string {
	var page strings.Builder

	fmt.Fprintf(&page, head, clients, runs, machine)

	for _, line := range lines {
		fmt.Fprintf(&page, "| %s |\n", strings.Join(
			[]string{line.what, line.measured, line.floor, line.ratio, line.must, string(line.reached)}, " | "))
	}

	return page.String()
}
