//go:build unix && !linux

package process

import "syscall"

// attributes put a server into a process group of its own: a Ctrl-C in the terminal reaches only the garden, which then stops its
// servers in order. The servers of a killed garden keep running: the next garden finds their ports in use and reports it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
