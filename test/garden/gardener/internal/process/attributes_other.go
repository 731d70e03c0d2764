//go:build unix && !linux

package process

import "syscall"

// attributes runs a server in a separate process group, so that Ctrl-C in the terminal reaches only the garden, which then stops
// its servers in order. If the garden is killed, its servers keep running. The next garden then reports that their ports are in
// use.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
