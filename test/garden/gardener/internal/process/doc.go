// Package process runs the servers of the local garden: as processes with a log file each, on ports that they keep over restarts. Where the
// operating system supports it, they never outlive the garden.
package process
