package main

import (
	"fmt"
	"strings"
)

const head = `# Benchmarks

Written by ` + "`make bench`" + `, which measures the broker as a program: load, broker, PostgreSQL and a simulated Provisioner share one machine. %d clients
send one request after another. A floor is the minimum cost of the same request: the same server, driver, pool, user check and log line, with
only the bare work between them. Figure and floor are measured alternately, and a ratio compares neighbours. Figures are medians of %d runs unless
they say otherwise. The last group is about the Provisioner: it, its load and the fake garden are one process.
[benchmark-bounds.md](benchmark-bounds.md) explains the figures that are close to their targets.

Machine: %s.

| figure | measured | floor | ratio | target | reached |
|---|---|---|---|---|---|
`

// render returns the page.
func render(machine machine, runs int, lines []line) string {
	var page strings.Builder

	fmt.Fprintf(&page, head, clients, runs, machine)

	for _, line := range lines {
		fmt.Fprintf(&page, "| %s |\n", strings.Join(
			[]string{line.what, line.measured, line.floor, line.ratio, line.must, string(line.reached)}, " | "))
	}

	return page.String()
}
