// Package program runs the programs that are measured and tells what they use of the machine.
package program
