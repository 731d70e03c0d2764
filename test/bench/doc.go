// Command bench measures the broker: the real program on a real PostgreSQL that keeps what it commits, before a simulated Provisioner, under
// requests of its own. Every figure that depends on the machine stands beside a floor, what the bare work costs on that machine,
// measured in turn with it. The result is a page with one table.
//
//	go run ./test/bench -only accept,catalog -runs 3
//
// A figure is a function in a file of its own; figures.go lists them.
package main
