// Package process runs the servers of the local garden. Each server is a process with a log file and a port that stays the same
// across restarts. On Linux, the servers exit when the garden exits for any reason.
//
// This package is independent of the individual servers: their flags and readiness checks are in packages controlplane and
// apiserver.
package process
