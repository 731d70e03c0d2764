// Package process runs the servers of the local garden: as processes with a log file each, on ports that they keep across restarts.
// On Linux they end with the garden, however it ends.
//
// The package knows nothing about the servers: their flags and readiness checks are in packages controlplane and apiserver.
package process
