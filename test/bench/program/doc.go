// Package program runs the measured programs and reads their CPU time and memory from Linux.
package program
