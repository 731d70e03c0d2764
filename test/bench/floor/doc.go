// Package floor serves the minimum of the broker's requests: the same server, Basic check, log line, driver and pool size, with only the bare
// work between them. The benchmarks report the broker's figures as shares of it.
package floor
