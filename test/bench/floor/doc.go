// Package floor serves what the broker's requests cost at least: the same server, Basic check, log line, driver and size of pool, with the
// bare work between them. What the broker reaches is told beside it.
package floor
