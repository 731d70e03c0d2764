// Command bench measures the broker: the real program on a durable PostgreSQL, with a simulated Provisioner and its own load. A figure that
// depends on the machine is compared to a floor, the bare work on the same machine, measured alternately with it. The result is a page with
// one table.
//
//	go run ./test/bench -only accept,catalog -runs 3
//
// Each figure is a function in its own file; figures.go lists them. A new figure needs both.
package main
