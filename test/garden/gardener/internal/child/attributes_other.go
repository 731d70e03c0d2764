//go:build unix && !linux

package child

import "syscall"

// attributes put a child into a process group of its own, so that a Ctrl-C in the terminal reaches only the garden, which then stops
// its children in order. A garden that is killed leaves its children behind here: the next one finds their ports taken and says so.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
